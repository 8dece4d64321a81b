package preemption

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gangctl/gangctl/scheduler/plugins/args"
)

func TestArgs(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "",
		`{"enabled":false,"searchBudget":"10ms","terminationTimeout":"1s"}`: "",
		`{"searchBudget":"9ms"}`:         "args.searchBudget: 9ms is not from 10ms to 10s",
		`{"searchBudget":"11s"}`:         "args.searchBudget: 11s is not from 10ms to 10s",
		`{"terminationTimeout":"500ms"}`: "args.terminationTimeout: 500ms is less than 1s",
		`{"enable":false}`:               `unknown field "enable"`,
		`{"enabled":"no"}`:               "args",
	} {
		_, err := args.Decode(&runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON}, DefaultArgs())
		if got := message(err); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	a, err := args.Decode(nil, DefaultArgs())
	if err != nil || !a.Enabled || a.SearchBudget.Duration != 300*time.Millisecond || a.TerminationTimeout.Duration != 5*time.Minute {
		t.Errorf("without arguments: %+v, %v", a, err)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
