"""The programs are for another process, where what they use is installed."""

collect_ignore_glob = ["programs/*"]
