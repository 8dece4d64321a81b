package stages

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

// found begins a finding; the methods below add to it.
func found(stage answer.Stage, code answer.Code, verdict answer.Verdict, who answer.Who, format string, args ...any) *Finding {
	return &Finding{Finding: answer.Finding{Code: code, Stage: stage, Verdict: verdict, Who: who, Message: line(format, args...)}}
}

// line is a text on one line: what others wrote may have several.
func line(format string, args ...any) string {
	parts := strings.FieldsFunc(fmt.Sprintf(format, args...), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return strings.TrimRight(strings.Join(parts, " "), " ")
}

func (f *Finding) never() *Finding {
	f.Never = true
	return f
}

func (f *Finding) detail(format string, args ...any) *Finding {
	f.Details = append(f.Details, line(format, args...))
	return f
}

func (f *Finding) fact(key string, value any) *Finding {
	if f.Facts == nil {
		f.Facts = map[string]any{}
	}
	f.Facts[key] = value
	return f
}

// see adds a field of an object as evidence.
func (f *Finding) see(apiVersion, kind string, obj metav1.Object, path string) *Finding {
	ref := apiVersion + "/" + kind + "/"
	if ns := obj.GetNamespace(); ns != "" {
		ref += ns + "/"
	}
	f.Evidence = append(f.Evidence, answer.Evidence{Ref: ref + obj.GetName(), Path: path, RV: obj.GetResourceVersion()})
	return f
}

func (f *Finding) seeRef(ref, path string) *Finding {
	f.Evidence = append(f.Evidence, answer.Evidence{Ref: ref, Path: path})
	return f
}

func (f *Finding) since(t time.Time) *Finding {
	if !t.IsZero() {
		f.Since = &t
	}
	return f
}

func (f *Finding) run(command string) *Finding {
	f.Commands = append(f.Commands, command)
	return f
}

func (f *Finding) fix(x Fix) *Finding {
	f.Fixes = append(f.Fixes, x)
	return f
}
