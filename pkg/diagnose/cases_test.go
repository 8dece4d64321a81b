package diagnose

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	answertext "github.com/gangctl/gangctl/pkg/diagnose/text"
)

const (
	// acceptanceCases is the directory of the cases; its README describes the files.
	acceptanceCases = "testdata/cases"
	// situations is the directory of what was written as the cases are, from what platforms do, before the program was run on any of it.
	situations = "testdata/situations"
)

// expectation is an expect.json.
type expectation struct {
	Args []string
	// Exit, Verdict and Code may be one of several: 3 or [3, 5], WAITING|BLOCKED.
	Exit            exits
	Verdict         *string
	Code            *string
	Say, NotSay     []string
	NotSayFirstLine []string
	Unblock         []expectedAction
	NotUnblock      []expectedAction
	AlsoBlocking    []string
	// First is the kind of the first action.
	First string
}

// exits are the exit codes of which one is expected.
type exits []int

func (e *exits) UnmarshalJSON(raw []byte) error {
	var one int
	if err := json.Unmarshal(raw, &one); err == nil {
		*e = exits{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]int)(e))
}

type expectedAction struct {
	Kind     string
	Change   map[string]any
	Contains string
}

func TestAcceptanceCases(t *testing.T) {
	eachCase(t, acceptanceCases, 48, func(t *testing.T, dir string, e expectation) {
		a, node := query(t, dir, e.Args)
		checkCase(t, e, a, node)
	})
}

func TestSituations(t *testing.T) {
	eachCase(t, situations, 165, func(t *testing.T, dir string, e expectation) {
		a, node := query(t, dir, e.Args)
		checkCase(t, e, a, node)
	})
}

// eachCase runs a subtest for each of so many cases in a directory, with its own directory and what is expected of it.
func eachCase(t *testing.T, from string, count int, check func(t *testing.T, dir string, e expectation)) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(from, "[a-z0-9]*", "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != count {
		t.Fatalf("%d cases in %s, want %d", len(dirs), from, count)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(dir, "expect.json"))
			if err != nil {
				t.Fatal(err)
			}
			var e expectation
			if err := json.Unmarshal(raw, &e); err != nil {
				t.Fatal(err)
			}
			check(t, dir, e)
		})
	}
}

// query runs a case with its arguments.
func query(t *testing.T, dir string, args []string) (a *answer.Answer, node string) {
	t.Helper()
	value := func(flag string) string {
		if i := slices.Index(args, flag); i >= 0 {
			return args[i+1]
		}
		return ""
	}
	s, err := snapshot.Open(t.Context(), filepath.Join(dir, value("--from")), nil)
	if err != nil {
		t.Fatal(err)
	}
	if args[0] == "submit" {
		raw, err := os.ReadFile(filepath.Join(dir, value("-f")))
		if err != nil {
			t.Fatal(err)
		}
		job := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(raw, &job.Object); err != nil {
			t.Fatal(err)
		}
		trial, err := DryRun(context.Background(), s, job, value("-n"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return trial.Answer, ""
	}
	if a, err = Explain(context.Background(), s, Query{Namespace: value("-n"), Kind: args[1], Name: args[2]}, Options{}); err != nil {
		t.Fatal(err)
	}
	return a, value("--node")
}

func checkCase(t *testing.T, e expectation, a *answer.Answer, node string) {
	t.Helper()
	code := ""
	if a.Primary != nil {
		code = string(a.Primary.Code)
	}
	oneOf := func(have string, want *string) bool { return slices.Contains(strings.Split(deref(want), "|"), have) }
	if !oneOf(code, e.Code) || !oneOf(string(a.Verdict), e.Verdict) || !slices.Contains(e.Exit, a.Exit) {
		t.Errorf("got %s %s exit %d, want %s %s exit %d", a.Verdict, code, a.Exit, deref(e.Verdict), deref(e.Code), e.Exit)
	}
	if e.First != "" && (len(a.Unblock) == 0 || string(a.Unblock[0].Kind) != e.First) {
		t.Errorf("the first action is not %s", e.First)
	}
	var out bytes.Buffer
	if err := answertext.Write(&out, a, answertext.Options{Node: node}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	first, _, _ := strings.Cut(text, "\n")
	for _, pattern := range e.Say {
		if !match(pattern, text) {
			t.Errorf("the text lacks /%s/", pattern)
		}
	}
	for _, pattern := range e.NotSay {
		if match(pattern, text) {
			t.Errorf("the text has /%s/", pattern)
		}
	}
	for _, pattern := range e.NotSayFirstLine {
		if match(pattern, first) {
			t.Errorf("the first line has /%s/", pattern)
		}
	}
	for _, want := range e.Unblock {
		if !offers(a, want, true) {
			t.Errorf("lacks the action %v", want)
		}
	}
	for _, want := range e.NotUnblock {
		if offers(a, want, false) {
			t.Errorf("offers the action %v", want)
		}
	}
	for _, want := range e.AlsoBlocking {
		if !slices.ContainsFunc(a.AlsoBlocking, func(f answer.Finding) bool { return string(f.Code) == want }) {
			t.Errorf("alsoBlocking lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log("\n" + text)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// lookaround matches what Go's expressions lack. It only guards the ends of numbers and names, so it is dropped from the patterns.
var lookaround = regexp.MustCompile(`\(\?<?[=!](?:[^()\[\]]|\[[^\]]*\]|\\.|\|)*\)`)

func match(pattern, text string) bool {
	pattern = lookaround.ReplaceAllString(pattern, "")
	return regexp.MustCompile("(?i)" + strings.ReplaceAll(pattern, "(?:|)", "")).MatchString(text)
}

// offers reports whether an answer has the action, with every key of the change at the value.
func offers(a *answer.Answer, want expectedAction, verified bool) bool {
	return slices.ContainsFunc(a.Unblock, func(x answer.Action) bool {
		if !slices.Contains(strings.Split(want.Kind, "|"), string(x.Kind)) || verified && !x.Verified {
			return false
		}
		for key, value := range want.Change {
			if key == "jobs" {
				if !sameJobs(value, x.Change[key]) {
					return false
				}
				continue
			}
			if !sameValue(value, x.Change[key]) {
				return false
			}
		}
		return want.Contains == "" || match(want.Contains, fmt.Sprint(x.Change, x.Command))
	})
}

func sameValue(a, b any) bool {
	if b == nil {
		return false
	}
	qa, errA := resource.ParseQuantity(fmt.Sprint(a))
	qb, errB := resource.ParseQuantity(fmt.Sprint(b))
	if errA == nil && errB == nil {
		return qa.Cmp(qb) == 0
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func sameJobs(want, got any) bool {
	names, _ := got.([]string)
	var short []string
	for _, n := range names {
		short = append(short, n[strings.LastIndexByte(n, '/')+1:])
	}
	slices.Sort(short)
	var desired []string
	list, _ := want.([]any)
	for _, n := range list {
		desired = append(desired, fmt.Sprint(n))
	}
	slices.Sort(desired)
	return slices.Equal(desired, short)
}
