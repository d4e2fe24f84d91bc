"""The labels by which the objects of an instance are found."""

HERITAGE, OPERATOR, INSTANCE = "heritage", "kudo.dev/operator", "kudo.dev/instance"

HERITAGE_VALUE = "kudo"
