"""Classify handwritten digits with pullback.nn: at least 97 % of the held-out images."""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import pullback as pb
from pullback import nn

images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 1, 8, 8).astype("float32") / 16
parts = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
x_train, x_test, y_train, y_test = map(pb.asarray, parts)

pb.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Dropout(0.4), nn.Linear(576, 10),
)  # fmt: skip
loss_fn = nn.CrossEntropyLoss()
optimizer = pb.optim.AdamW(model.parameters(), lr=2e-3)
batches = pb.data.batches(x_train, y_train, size=64, seed=0)
for _ in range(20):
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()

model.eval()
with pb.no_grad():
    accuracy = (model(x_test).argmax(dim=1) == y_test).to(pb.float32).mean().item()
print(f"accuracy on {len(y_test)} held-out digits: {100 * accuracy:.2f} %")
raise SystemExit(accuracy < 0.97)
