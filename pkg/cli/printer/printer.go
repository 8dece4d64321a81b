// Package printer writes answers to standard output in the form of -o. The formats are kubectl's.
package printer

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/gangctl/gangctl/pkg/cli/failure"
)

// The formats that take no argument. The empty format is the command's own table or text.
const (
	Table = ""
	Wide  = "wide"
	JSON  = "json"
	YAML  = "yaml"
	Name  = "name"
)

// templated formats take an argument after "=".
var templated = []string{"jsonpath", "jsonpath-as-json", "go-template", "custom-columns"}

// Flags are -o and, for tables, --no-headers.
type Flags struct {
	Output    string
	NoHeaders bool

	formats []string
}

// AddFlags adds -o for the given formats, which completion offers, and checks nothing: Validate does.
func (f *Flags) AddFlags(cmd *cobra.Command, formats ...string) {
	f.formats = formats
	cmd.Flags().StringVarP(&f.Output, "output", "o", "", "Output format: "+strings.Join(f.names(), "|"))
	// Fails only for a flag that does not exist: a mistake in the program.
	if err := cmd.RegisterFlagCompletionFunc("output", f.complete); err != nil {
		panic(err)
	}
}

// WithTemplates adds to the formats of a command those by which a program takes parts of its JSON.
func WithTemplates(formats ...string) []string {
	return append(formats, "jsonpath", "jsonpath-as-json", "go-template")
}

// Encode writes a value, as its JSON, in the format of -o.
func (f *Flags) Encode(out io.Writer, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	switch f.Output {
	case JSON:
		text = append(text, '\n')
	case YAML:
		if text, err = jsonToYAML(text); err != nil {
			return err
		}
	default:
		p, err := f.Printer()
		if err != nil {
			return err
		}
		content := map[string]any{}
		if err := utiljson.Unmarshal(text, &content); err != nil { // which keeps whole numbers whole
			return err
		}
		return p.PrintObj(&unstructured.Unstructured{Object: content}, out)
	}
	_, err = out.Write(text)
	return err
}

// AddTableFlags adds -o with every format of a listing, and --no-headers.
func (f *Flags) AddTableFlags(cmd *cobra.Command) {
	f.AddFlags(cmd, append([]string{JSON, YAML, Wide, Name}, templated...)...)
	cmd.Flags().BoolVar(&f.NoHeaders, "no-headers", false, "Print no column headers")
}

// Validate reports a format that the command does not have: exit code 2.
func (f *Flags) Validate() error {
	if f.Output == Table {
		return nil
	}
	format, argument, hasArgument := strings.Cut(f.Output, "=")
	takesArgument := slices.Contains(templated, format)
	switch {
	case !slices.Contains(f.formats, format), hasArgument && !takesArgument:
		return failure.Usagef("--output %q: must be one of %s", f.Output, strings.Join(f.names(), ", "))
	case takesArgument && argument == "":
		return failure.Usagef("--output %s needs a template: %s=TEMPLATE", format, format)
	}
	if !f.IsTable() {
		if _, err := f.Printer(); err != nil {
			return failure.Usagef("--output %s: %w", f.Output, err)
		}
	}
	return nil
}

// IsTable reports whether the command prints its own table rather than API objects.
func (f *Flags) IsTable() bool { return f.Output == Table || f.Output == Wide }

// Printer prints API objects (which must carry apiVersion and kind) in the format of -o. It leaves managedFields out of
// JSON and YAML, as kubectl does.
func (f *Flags) Printer() (printers.ResourcePrinter, error) {
	if spec, ok := strings.CutPrefix(f.Output, "custom-columns="); ok {
		return newCustomColumns(spec, f.NoHeaders)
	}
	format, template, _ := strings.Cut(f.Output, "=")
	switch format {
	case JSON:
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}, nil
	case YAML:
		return &printers.OmitManagedFieldsPrinter{Delegate: &yamlPrinter{}}, nil
	case Name:
		return &printers.NamePrinter{ShortOutput: true}, nil
	case "go-template":
		return f.goTemplate(template)
	case "jsonpath", "jsonpath-as-json":
		return f.jsonPath(template, format != "jsonpath")
	}
	return nil, fmt.Errorf("no printer for %q", f.Output)
}

// goTemplate prints what a template makes of an object. A field that is missing is empty, as in kubectl.
func (f *Flags) goTemplate(template string) (printers.ResourcePrinter, error) {
	p, err := printers.NewGoTemplatePrinter([]byte(template))
	if err != nil {
		return nil, fmt.Errorf("error parsing template %s, %w", template, err)
	}
	p.AllowMissingKeys(true)
	return p, nil
}

// jsonPath prints what a path finds in an object, as text or as JSON. A field that is missing is empty, as in kubectl.
func (f *Flags) jsonPath(template string, asJSON bool) (printers.ResourcePrinter, error) {
	p, err := printers.NewJSONPathPrinter(template)
	if err != nil {
		return nil, fmt.Errorf("error parsing jsonpath %s, %w", template, err)
	}
	p.AllowMissingKeys(true)
	p.EnableJSONOutput(asJSON)
	return p, nil
}

// complete offers the formats. No blank follows one that ends in "=": its argument does.
func (f *Flags) complete(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	names := slices.DeleteFunc(f.names(), func(name string) bool { return !strings.HasPrefix(name, prefix) })
	if slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, "=") }) {
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (f *Flags) names() []string {
	names := slices.Clone(f.formats)
	for i, w := range names {
		if slices.Contains(templated, w) {
			names[i] = fmt.Sprintf("%s=", w)
		}
	}
	return names
}
