"""What an error that is raised inside an operation adds by itself: who was called, with what."""

import pickle

import pytest

import pullback as pb


def message_of(call):
    with pytest.raises(pb.AutogradError) as caught:
        call()
    return str(caught.value)


def m():
    return pb.ones((2, 3))


def test_an_operation_made_of_others_is_named_with_its_own_inputs():
    assert message_of(lambda: pb.amax(m(), 5)).splitlines() == [
        "amax: axis must be in the range [-2, 1] for a tensor of 2 dimensions, got 5",
        "  x: shape (2, 3), dtype float32",
    ]


def test_what_the_message_says_already_is_not_said_again():
    assert message_of(lambda: m() + pb.ones(2)).splitlines() == [
        "add: shapes that broadcast required, got (2, 3) and (2,)",
        "  x: shape (2, 3), dtype float32",
        "  y: shape (2,), dtype float32",
    ]
    message = message_of(lambda: pb.cosine_similarity(m(), pb.ones(2)))
    assert message.count("shape (2, 3), dtype float32") == 1
    assert message.startswith("cosine_similarity: shapes that broadcast ")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: m().unsqueeze(5), "unsqueeze"),
        (lambda: m().view(2, 2), "view"),
        (lambda: m().repeat(-1), "repeat"),
        (lambda: m().movedim(0, 5), "movedim"),
        (lambda: m().expand_as(pb.ones(7)), "expand_as"),
        (lambda: m().addmm_(m(), m()), "addmm_"),
        (lambda: m().divide("x"), "divide"),
        (lambda: m().true_divide_("x"), "true_divide_"),
        (lambda: pb.unsqueeze(m(), 7), "unsqueeze"),
        (lambda: pb.arccos("x"), "arccos"),
        (lambda: pb.special.psi("x"), "psi"),
        (lambda: pb.nn.functional.softmin(m(), axis=4), "softmin"),
    ],
)
def test_an_error_names_the_function_or_alias_that_the_user_called(call, name):
    assert message_of(call).startswith(f"{name}: ")


def test_a_part_of_an_operation_is_named_beside_it():
    message = message_of(lambda: m().type("real"))
    assert message.startswith("dtype: ")
    assert "\nin type\n" in message


def test_an_alias_whose_line_is_not_known_has_the_functions_first_name():
    with pytest.raises(TypeError, match=r"^acos: "):
        exec("pb.arccos('x')", {"pb": pb})


def test_a_change_in_place_describes_what_is_changed_and_what_by():
    message = message_of(lambda: m().mul_(pb.ones((2, 2, 3))))
    assert message.startswith("mul_: ")
    assert message.splitlines()[1:3] == [
        "  x: shape (2, 3), dtype float32",
        "  y: shape (2, 2, 3), dtype float32",
    ]
    assert message.splitlines()[3].startswith("hint: ")


def test_two_inputs_of_one_shape_and_dtype_are_both_described():
    message = message_of(lambda: pb.concat([m(), m()], axis=7))
    assert message.splitlines()[1:] == [
        "  arrays[0]: shape (2, 3), dtype float32",
        "  arrays[1]: shape (2, 3), dtype float32",
    ]


def test_the_hint_stays_the_last_line():
    message = message_of(lambda: pb.kron(m(), None))
    assert message.splitlines()[1:] == [
        "  input: shape (2, 3), dtype float32",
        "hint: make a tensor of it with pullback.tensor",
    ]


def test_an_array_librarys_reason_is_passed_on():
    message = message_of(lambda: pb.tensor([2]) ** pb.tensor([-1]))
    assert "Integers to negative integer powers" in message


def test_an_error_that_a_users_function_raises_is_left_alone():
    @pb.autograd_function
    def picky(ctx, x):
        raise pb.errors.ShapeError("picky: no")

    assert message_of(lambda: picky(m())) == "picky: no"
    assert message_of(lambda: pb.grad(lambda x: picky(x))(m())) == "picky: no"


def test_an_error_about_the_graph_is_left_alone():
    message = message_of(lambda: m().sum().backward())
    assert message.startswith("backward: ")
    assert "shape (2, 3)" not in message


def test_a_completed_error_survives_pickling():
    with pytest.raises(ValueError, match="add: ") as caught:
        m() + pb.ones(2)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is type(caught.value)
    assert str(copy) == str(caught.value)
