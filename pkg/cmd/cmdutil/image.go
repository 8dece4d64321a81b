package cmdutil

import (
	"github.com/distribution/reference"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// CheckImage refuses, as the value of a flag, a name that no kubelet can pull: a digest that lost a digit shows when pods do not start, and only
// then. An empty name is that of the default.
func CheckImage(flag, name string) error {
	if name == "" {
		return nil
	}
	if _, err := reference.ParseNormalizedNamed(name); err != nil {
		return failure.Usagef("--%s %q: %w", flag, name, err).WithHint("for example: --%s registry.example.com/ml/train:v1.2.3, or with a digest, train@sha256: and 64 hexadecimal digits", flag)
	}
	return nil
}
