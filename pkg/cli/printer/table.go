package printer

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/gangctl/gangctl/pkg/cli/wrap"
)

// columnGap is the space between columns, which is that of cli-runtime's table printer, and minColumn the width that the
// printer gives a column at least, gap included.
const (
	columnGap = 3
	minColumn = 6
	// minLast is what is left of the last column at least: less is of no use, so the line of a table wraps instead, and a grid spares
	// other columns.
	minLast = 20
)

// Column is a column of a table or a grid.
type Column struct {
	Name string
	// Wide columns of a table are shown by -o wide only.
	Wide bool
	// Spare is the order in which columns of a grid are left out on a narrow screen, the highest first; 0 always stays.
	Spare int
}

// PrintTable prints rows under columns. Width is that of the terminal: the last column is cut to fit; 0 cuts nothing.
func PrintTable(out io.Writer, f Flags, width int, columns []Column, rows [][]string) error {
	table := &metav1.Table{}
	for _, c := range columns {
		d := metav1.TableColumnDefinition{Name: c.Name, Type: "string"}
		if c.Wide {
			d.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, d)
	}
	lastWidth := widthOfLast(f, width, columns, rows)
	for _, row := range rows {
		cells := make([]any, len(row))
		for i, cell := range row {
			cell = strings.Join(strings.Fields(cell), " ")
			if lastWidth > 0 && i == len(row)-1 {
				cell = wrap.Cut(cell, lastWidth)
			}
			cells[i] = cell
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	p := printers.NewTablePrinter(printers.PrintOptions{NoHeaders: f.NoHeaders, Wide: f.Output == Wide})
	var text strings.Builder
	if err := p.PrintObj(table, &text); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return writeTrimmed(out, text.String())
}

// writeTrimmed writes lines without the blanks that they end in.
func writeTrimmed(out io.Writer, text string) error {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// widthOfLast is how many characters the last column may have; 0 is no limit.
func widthOfLast(f Flags, width int, columns []Column, rows [][]string) int {
	if width <= 0 {
		return 0
	}
	used := 0
	for i, c := range columns[:len(columns)-1] {
		if c.Wide && f.Output != Wide {
			continue
		}
		widest := 0
		if !f.NoHeaders {
			widest = wrap.Columns(c.Name)
		}
		for _, row := range rows {
			widest = max(widest, wrap.Columns(row[i]))
		}
		used += max(widest+columnGap, minColumn)
	}
	return max(width-used, minLast)
}

// Field is a line of a description: a label and its value.
type Field struct{ Label, Value string }

// PrintFields prints fields, each on a line of its own that begins with the indent, with the values below each other. A field
// without a value is left out; one of several lines could be taken for several fields, and is one.
func PrintFields(out io.Writer, indent string, fields ...Field) error {
	widest := 0
	for _, f := range fields {
		widest = max(widest, wrap.Columns(f.Label))
	}
	var b strings.Builder
	for _, f := range fields {
		if f.Value != "" {
			fmt.Fprintf(&b, "%s%-*s %s\n", indent, widest+1, f.Label+":", strings.Join(strings.Fields(f.Value), " "))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
