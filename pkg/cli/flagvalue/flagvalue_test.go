package flagvalue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
)

type shape string

func TestValues(t *testing.T) {
	tests := []struct {
		args []string
		want string // "error: …" or shape/count/quantity
	}{
		{nil, "round/3/<nil>"},
		{[]string{"--shape=square", "--count=10", "--cpu=500m"}, "square/10/500m"},
		{[]string{"--cpu=0.5"}, "round/3/500m"},
		{[]string{"--shape=flat"}, `error: invalid argument "flat" for "--shape" flag: must be one of round, square`},
		{[]string{"--count=-1"}, `error: invalid argument "-1" for "--count" flag: must be a whole number from 1 to 10`},
		{[]string{"--count=0"}, `error: invalid argument "0" for "--count" flag: must be a whole number from 1 to 10`},
		{[]string{"--count=11"}, `error: invalid argument "11" for "--count" flag: must be a whole number from 1 to 10`},
		{[]string{"--count=99999999999999999999"}, `error: invalid argument "99999999999999999999" for "--count" flag: must be a whole number from 1 to 10`},
		{[]string{"--count=two"}, `error: invalid argument "two" for "--count" flag: must be a whole number from 1 to 10`},
		{[]string{"--cpu=4x"}, `error: invalid argument "4x" for "--cpu" flag: must be a quantity greater than zero, such as 500m, 4 or 16Gi`},
		{[]string{"--cpu=0"}, `error: invalid argument "0" for "--cpu" flag: must be a quantity greater than zero, such as 500m, 4 or 16Gi`},
		{[]string{"--cpu=16Gi"}, `error: invalid argument "16Gi" for "--cpu" flag: must be at most 1000000 CPUs, such as 500m or 4`},
		{[]string{"--cpu=-1"}, `error: invalid argument "-1" for "--cpu" flag: must be a quantity greater than zero, such as 500m, 4 or 16Gi`},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			var s shape
			var n int32
			var q *resource.Quantity
			cmd := &cobra.Command{Use: "x"}
			Enum(cmd, cmd.Flags(), &s, "shape", "round", "Shape", "round", "square")
			Count(cmd.Flags(), &n, "count", 3, 1, 10, "Count")
			CPUs(cmd.Flags(), &q, "cpu", "CPU")
			got := ""
			if err := cmd.ParseFlags(tt.args); err != nil {
				got = "error: " + err.Error()
			} else {
				got = string(s) + "/" + cmd.Flag("count").Value.String() + "/" + quantityString(q)
			}
			if got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// Memory of less than a program takes is a slip.
func TestBytes(t *testing.T) {
	for value, want := range map[string]string{
		"1Mi": "", "16Gi": "", "1e9": "", "0.5Gi": "",
		"400m": "must be at least 1Mi, such as 16Gi: m is thousandths, and Mi are mebibytes", "16": "must be at least 1Mi, such as 16Gi: a number alone is bytes",
		"2Ki": "must be at least 1Mi, such as 16Gi", "0": "must be a quantity greater than zero, such as 500m, 4 or 16Gi",
	} {
		var q *resource.Quantity
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		Bytes(flags, &q, "memory", "Memory")
		err := flags.Set("memory", value)
		if got := strings.TrimPrefix(fmt.Sprint(err), fmt.Sprintf("invalid argument %q for \"--memory\" flag: ", value)); got != want && (err != nil || want != "") {
			t.Errorf("%s: got %q", value, got)
		}
		if (q == nil) != (err != nil) {
			t.Errorf("%s: got %v, %v", value, q, err)
		}
	}
}

// What a flag takes is in its error, and no function of Go.
func TestExplain(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.BoolP("shell", "s", false, "")
	flags.Int("index", 0, "")
	flags.Duration("since", 0, "")
	flags.Float64("share", 0, "")
	for arg, want := range map[string]string{
		"--shell=maybe": `invalid argument "maybe" for "-s, --shell" flag: must be true or false`, "--index=true": `invalid argument "true" for "--index" flag: must be a whole number`,
		"--since=3": `invalid argument "3" for "--since" flag: must be a time with its unit, such as 90s, 10m or 12h`, "--share=x": `invalid argument "x" for "--share" flag: must be a number`,
		"--shell=true": "", "--other": "unknown flag: --other",
	} {
		err := ExplainParsed(flags.Parse([]string{arg}))
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%s: got %s", arg, got)
		}
	}
	own := errors.New("its own")
	if got := Explain(flags.Lookup("index"), own); !errors.Is(got, own) || Explain(flags.Lookup("index"), nil) != nil {
		t.Errorf("got %v", got)
	}
}

func quantityString(q *resource.Quantity) string {
	if q == nil {
		return "<nil>"
	}
	return q.String()
}

// A flag that is checked is for all else what it was: it takes the same values, and its help is the same.
func TestCheck(t *testing.T) {
	add := func(flags *pflag.FlagSet) (text *string, list *[]string) {
		flags.Duration("since", 0, "a time")
		return flags.String("text", "a", "a text"), flags.StringArray("list", nil, "a list")
	}
	plain, flags := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	add(plain)
	text, list := add(flags)
	refused := errors.New("refused")
	Check(flags, func() error {
		if *text == "bad" || slices.Contains(*list, "bad") {
			return refused
		}
		return nil
	}, "text", "list", "since", "absent")
	if got, want := flags.FlagUsages(), plain.FlagUsages(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, name := range []string{"text", "list"} { // a list keeps what it has
		checked, ok := flags.Lookup(name).Value.(Checked)
		if !ok || checked.Check() != nil {
			t.Fatalf("%s: got %v", name, checked.Check())
		}
		if err := flags.Set(name, "bad"); err != nil || !errors.Is(checked.Check(), refused) {
			t.Errorf("%s: got %v, %v", name, err, checked.Check())
		}
		if err := flags.Set("text", "a"); err != nil {
			t.Fatal(err)
		}
	}
	if values, ok := flags.Lookup("list").Value.(pflag.SliceValue); !ok || !slices.Equal(values.GetSlice(), []string{"bad"}) {
		t.Error("the list is none any more")
	}
}
