package printer

import (
	"fmt"
	"io"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

// customColumns prints the columns of -o custom-columns=HEADER:PATH,… as kubectl defines them: a path is a JSONPath whose
// braces and leading dot may be left out, several results are joined with commas, a missing one reads <none>.
type customColumns struct {
	headers   []string
	paths     []*jsonpath.JSONPath
	noHeaders bool
}

func newCustomColumns(spec string, noHeaders bool) (printers.ResourcePrinter, error) {
	c := &customColumns{noHeaders: noHeaders}
	for column := range strings.SplitSeq(spec, ",") {
		header, path, ok := strings.Cut(column, ":")
		if !ok || header == "" || path == "" {
			return nil, fmt.Errorf("column %q: want HEADER:JSONPATH", column)
		}
		path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
		p := jsonpath.New(header).AllowMissingKeys(true)
		if err := p.Parse("{." + strings.TrimPrefix(path, ".") + "}"); err != nil {
			return nil, fmt.Errorf("column %q: %w", column, err)
		}
		c.headers, c.paths = append(c.headers, header), append(c.paths, p)
	}
	return c, nil
}

// PrintObj implements printers.ResourcePrinter for one object or a list.
func (c *customColumns) PrintObj(obj runtime.Object, out io.Writer) error {
	objects := []runtime.Object{obj}
	if meta.IsListType(obj) {
		var err error
		if objects, err = meta.ExtractList(obj); err != nil {
			return err
		}
	}
	w := printers.GetNewTabWriter(out)
	if !c.noHeaders {
		fmt.Fprintln(w, strings.Join(c.headers, "\t"))
	}
	for _, o := range objects {
		cells, err := c.row(o)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func (c *customColumns) row(obj runtime.Object) ([]string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	cells := make([]string, len(c.paths))
	for i, path := range c.paths {
		results, err := path.FindResults(content)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", c.headers[i], err)
		}
		cells[i] = joined(results)
	}
	return cells, nil
}

func joined(results [][]reflect.Value) string {
	var cells []string
	for _, result := range results {
		for _, value := range result {
			cells = append(cells, printers.EscapeTerminal(fmt.Sprint(value.Interface())))
		}
	}
	if len(cells) == 0 {
		return "<none>"
	}
	return strings.Join(cells, ",")
}
