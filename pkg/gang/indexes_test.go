package gang_test

import (
	"math"
	"strings"
	"testing"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Whatever a status has, a set of indexes is no larger than its text.
func TestIndexes(t *testing.T) {
	for _, tt := range []struct {
		text  string
		below int32
		want  string
		count int32
		in    []int
		out   []int
	}{
		{"", 8, "", 0, nil, []int{0}},
		{"3", 8, "3", 1, []int{3}, []int{2, 4}},
		{"1,3-5,7", 8, "1,3-5,7", 5, []int{1, 3, 4, 5, 7}, []int{0, 2, 6, 8}},
		{"0-2000000000", math.MaxInt32, "0-2000000000", 2000000001, []int{0, 2000000000}, []int{-1, 2000000001}},
		{"0-2000000000", 8, "0-7", 8, []int{7}, []int{8}},
		{"9-12", 8, "", 0, nil, []int{9}},
		{"1,x,-3,5-4,1,0,7", 8, "1,7", 2, []int{1, 7}, []int{0, 3, 4, 5}},
		{"99999999999999999999", 8, "", 0, nil, []int{0}},
		{"0,2,4,6,8,10", 16, "0,2,4,6,+2", 6, []int{10}, []int{9}},
		{"0", -1, "", 0, nil, []int{0}},
	} {
		x := gang.ParseIndexes(tt.text, tt.below)
		if x.String() != tt.want || x.Count() != tt.count {
			t.Errorf("%q below %d: got %s, %d", tt.text, tt.below, x, x.Count())
		}
		for want, indexes := range map[bool][]int{true: tt.in, false: tt.out} {
			for _, i := range indexes {
				if _, found := x.Through(i); found != want {
					t.Errorf("%q: %d is found: %t", tt.text, i, found)
				}
			}
		}
	}
	if n := len(gang.ParseIndexes(strings.Repeat("1,", 1000), 8)); n != 1 {
		t.Errorf("%d ranges of one index", n)
	}
}
