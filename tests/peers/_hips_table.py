"""The tests of HIPS autograd 1.9.1 that do not pass, by the reason; all others do."""

RECORDED = "const_graph records the graph anew: it saves no time here"
PRECISION = "there is no derivative in more than double precision"
MORE = "it is there: rfftn of an odd length, writing to an argument's copy"
NAMES = "derivatives keep the name and the docstring of their function"

FAILING = {
    RECORDED: "test_misc.py::test_const_graph test_misc.py::test_const_graph_args",
    PRECISION: "test_wrappers.py::test_dtypes",
    MORE: """
        test_fft.py::test_rfftn_odd_not_implemented test_graphs.py::test_assignment_raises_error
    """,
    NAMES: "test_wrappers.py::test_wrapped_name_and_docs",
}
