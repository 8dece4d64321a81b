package overlay

import (
	"strings"
	"testing"
)

func TestReplace(t *testing.T) {
	const head = "package util\n\nimport %s\"k8s.io/kubernetes/pkg/scheduler\"\n\n"
	for _, c := range []struct{ name, source, want, fails string }{
		{
			"both calls, and nothing else",
			"package util\n\nimport (\n\tother \"new\"\n\t\"k8s.io/kubernetes/pkg/scheduler\"\n)\n\n// scheduler.New is\nfunc a() { scheduler.New(x) ; other.New()\n\tscheduler.NewInformerFactory() }\nvar b = scheduler.New(\n\ty)\n",
			"package util; import gangctl \"" + ours + "\"\n\nimport (\n\tother \"new\"\n\t\"k8s.io/kubernetes/pkg/scheduler\"\n)\n\n// scheduler.New is\nfunc a() { gangctl.New(x) ; other.New()\n\tscheduler.NewInformerFactory() }\nvar b = gangctl.New(\n\ty)\n",
			"",
		},
		{"under another name", strings.Replace(head, "%s", "s ", 1) + "var a, b = s.New(), s.New()\n",
			"package util; import gangctl \"" + ours + "\"\n\nimport s \"k8s.io/kubernetes/pkg/scheduler\"\n\nvar a, b = gangctl.New(), gangctl.New()\n", ""},
		{"one call", strings.Replace(head, "%s", "", 1) + "var a = scheduler.New()\n", "", "1 calls of scheduler.New, not 2"},
		{"not imported", "package util\n", "", "is not imported"},
		{"no Go", "package", "", "expected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := replace([]byte(c.source))
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Fatalf("error %v, want %q", err, c.fails)
			}
			if string(got) != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}
