// Package operator knows the releases of the Kubeflow Training Operator, and of tf-operator before it: how to recognise them in a cluster,
// which flags make each create gangs, and which rights it needs for that. It is pure.
package operator

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/gangctl/gangctl/pkg/setup/imagename"
)

// Release is a release of the operator. The zero value is one that is not known.
type Release struct {
	Major, Minor int
	// Patch is -1 where only the minor release is known.
	Patch int
	// Guessed is true if the release was derived from where the image comes from, not from its tag: it may be a later one.
	Guessed bool
}

// Known reports whether anything is known of the release.
func (r Release) Known() bool { return r != Release{} }

// String reads like v1.9.4, v1.7, or "of unknown release".
func (r Release) String() string {
	switch {
	case !r.Known():
		return "of unknown release"
	case r.Guessed:
		return fmt.Sprintf("v%d.%d or later", r.Major, r.Minor)
	case r.Patch < 0:
		return fmt.Sprintf("v%d.%d", r.Major, r.Minor)
	}
	return fmt.Sprintf("v%d.%d.%d", r.Major, r.Minor, r.Patch)
}

// Before reports whether the release is older than MAJOR.MINOR.
func (r Release) Before(major, minor int) bool {
	return cmp.Or(cmp.Compare(r.Major, major), cmp.Compare(r.Minor, minor)) < 0
}

// builds are the tags of the official images, which name a commit, by release.
var builds = map[string]Release{
	"v1-e1434f6": {Major: 1, Minor: 5}, "v1-5a5f92d": {Major: 1, Minor: 6}, "v1-855e096": {Major: 1, Minor: 7}, "v1-04f9f13": {Major: 1, Minor: 8, Patch: 1},
	"v1-5170a36": {Major: 1, Minor: 9}, "v1-5c0e763": {Major: 1, Minor: 9, Patch: 1}, "v1-3f15cb8": {Major: 1, Minor: 9, Patch: 2},
	"v1-d6eb98e": {Major: 1, Minor: 9, Patch: 3}, "v1-93c5489": {Major: 1, Minor: 9, Patch: 4},
}

// origins are the registries of the official images, each with the first release that came from there.
var origins = []struct {
	part  string
	first Release
}{
	{"kubeflow/training-v1/training-operator", Release{Major: 1, Minor: 9, Patch: -1}},
	{"j1r0q0g6/training/training-operator", Release{Major: 1, Minor: 3, Patch: -1}},
	{"j1r0q0g6/training/tf-operator", Release{Major: 1, Minor: 1, Patch: -1}},
	{"kubeflow-images-public/tf_operator", Release{Major: 0, Minor: 5, Patch: -1}},
	{"kubeflow/training-operator", Release{Major: 1, Minor: 5, Patch: -1}},
}

// version is a release in a tag, as mirrors and old images have it.
var version = regexp.MustCompile(`^v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+].*)?$`)

// ParseRelease reads v1.7, 1.8.1 and the like.
func ParseRelease(text string) (Release, error) {
	m := version.FindStringSubmatch(text)
	if m == nil {
		return Release{}, fmt.Errorf("release %q: want MAJOR.MINOR, such as 1.8", text)
	}
	r := Release{Patch: -1}
	// The expression matches digits only; what is too long for a number becomes the largest one.
	r.Major, _ = strconv.Atoi(m[1])
	r.Minor, _ = strconv.Atoi(m[2])
	if m[3] != "" {
		r.Patch, _ = strconv.Atoi(m[3])
	}
	return r, nil
}

// releaseOf derives the release from an image.
func releaseOf(image string) Release {
	repository, tag := imagename.Split(image)
	if r, ok := builds[tag]; ok {
		return r
	}
	if r, err := ParseRelease(tag); err == nil {
		return r
	}
	for _, o := range origins {
		if strings.HasSuffix(repository, o.part) {
			r := o.first
			r.Guessed = true
			return r
		}
	}
	return Release{}
}
