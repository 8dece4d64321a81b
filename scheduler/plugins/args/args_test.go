package args

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

type sample struct {
	After metav1.Duration `json:"after"`
	Limit int             `json:"limit"`
}

func (s sample) Validate() error {
	if s.Limit < 0 {
		return fmt.Errorf("limit: %d is negative", s.Limit)
	}
	return nil
}

func TestDecode(t *testing.T) {
	defaults := sample{After: metav1.Duration{Duration: time.Minute}, Limit: 3}
	for name, c := range map[string]struct {
		raw, contentType string
		want             sample
		wrong            string
	}{
		"nothing":       {want: defaults},
		"part":          {raw: `{"limit":7}`, contentType: runtime.ContentTypeJSON, want: sample{After: defaults.After, Limit: 7}},
		"yaml":          {raw: "after: 6s\n", contentType: runtime.ContentTypeYAML, want: sample{After: metav1.Duration{Duration: 6 * time.Second}, Limit: 3}},
		"unknown field": {raw: `{"afer":"6s"}`, contentType: runtime.ContentTypeJSON, wrong: `"afer"`},
		"wrong type":    {raw: `{"limit":"many"}`, contentType: runtime.ContentTypeJSON, wrong: "limit"},
		"refused":       {raw: `{"limit":-1}`, contentType: runtime.ContentTypeJSON, wrong: "args.limit: -1 is negative"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decode(&runtime.Unknown{Raw: []byte(c.raw), ContentType: c.contentType}, defaults)
			switch {
			case c.wrong == "" && (err != nil || got != c.want):
				t.Errorf("got %+v, %v", got, err)
			case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
				t.Errorf("got %v, want an error with %s", err, c.wrong)
			}
		})
	}
	if got, err := Decode(nil, defaults); err != nil || got != defaults {
		t.Errorf("without args: %+v, %v", got, err)
	}
}
