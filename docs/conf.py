"""The configuration of the site, which Sphinx reads: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import bench_figures
import entries
import generate

import pullback as pb

project = "pullback"
author = "The pullback developers"
version = release = pb.__version__
html_title = "pullback"
copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    *("gallery", "example-sources", "**sg_execution_times.rst"),
    "project/bench-figures.md",  # a part of benchmarks.md
]
suppress_warnings = ["config.cache"]  # functions in this file
nitpicky = False
default_role = "code"  # docstrings write names as Markdown does
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "alphabetical"
autodoc_typehints = "none"  # the parameters say what they are
autosummary_generate = False
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": ["gallery", "example-sources"],
    "gallery_dirs": ["figures", "examples"],
    # The others take longer than five seconds, or end the process: their output is recorded.
    "filename_pattern": r"/gallery/|extending\.py|two_layer_net",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "show_signature": False,
}

html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["pullback.css"]
html_js_files = ["labels.js"]
html_search_scorer = str(HERE / "_static" / "scorer.js")
html_copy_source = html_show_sourcelink = False
html_use_index = html_domain_indices = False
html_theme_options = {
    "navbar_align": "left",
    "collapse_navigation": True,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def setup(app):
    """Write what is generated, and connect what the site adds to Sphinx."""
    generate.write(HERE)
    bench_figures.write(HERE)
    entries.connect(app)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
