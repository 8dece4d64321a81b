package placement

import (
	"slices"
	"testing"
)

func TestNeeded(t *testing.T) {
	for name, test := range map[string]struct {
		set    []int
		enough func([]int) bool
		want   []int
	}{
		"nothing can go":         {[]int{1, 2}, func(s []int) bool { return len(s) == 2 }, []int{1, 2}},
		"the first go":           {[]int{1, 2, 3}, func(s []int) bool { return len(s) > 0 }, []int{3}},
		"all go":                 {[]int{1, 2}, func([]int) bool { return true }, []int{}},
		"two of which one would": {[]int{1, 2, 3}, func(s []int) bool { return slices.Contains(s, 2) && len(s) > 1 }, []int{2, 3}},
	} {
		before := slices.Clone(test.set)
		if got := Needed(test.set, test.enough); !slices.Equal(got, test.want) || !slices.Equal(test.set, before) {
			t.Errorf("%s: got %v of %v, want %v", name, got, test.set, test.want)
		}
	}
}
