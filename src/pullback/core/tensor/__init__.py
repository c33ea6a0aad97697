"""What a user holds: the tensor, its views, its printed form, saved values and versions."""
