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
	// minLast is what is left of the last column at least: less is of no use, so other columns are spared.
	minLast = 20
)

// Column is a column of a table or a grid.
type Column struct {
	Name string
	// Wide columns of a table are shown by -o wide only.
	Wide bool
	// Spare is the order in which columns are left out on a narrow screen, the highest first; 0 always stays, and so does the last one.
	Spare int
}

// PrintTable prints rows under columns. Width is that of the terminal: columns that can be spared are left out where it is narrow, the last one
// is cut to fit, and no line is longer; 0 is no limit.
func PrintTable(out io.Writer, f Flags, width int, columns []Column, rows [][]string) error {
	shown, lastWidth := fitting(f, width, columns, rows)
	table := &metav1.Table{}
	for i, c := range columns {
		if shown[i] {
			table.ColumnDefinitions = append(table.ColumnDefinitions, metav1.TableColumnDefinition{Name: c.Name, Type: "string"})
		}
	}
	for _, row := range rows {
		var cells []any
		for i, cell := range row {
			if !shown[i] {
				continue
			}
			cell = strings.Join(strings.Fields(cell), " ")
			if lastWidth > 0 && i == len(row)-1 {
				cell = wrap.Cut(cell, lastWidth)
			}
			cells = append(cells, cell)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	p := printers.NewTablePrinter(printers.PrintOptions{NoHeaders: f.NoHeaders})
	var text strings.Builder
	if err := p.PrintObj(table, &text); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return writeLines(out, text.String(), width)
}

// writeLines writes lines without the blanks that they end in, and none that is wider than the terminal.
func writeLines(out io.Writer, text string, width int) error {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(wrap.Cut(strings.TrimRight(line, " \n"), width) + "\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// fitting reports which columns of a table are shown, and how many characters the last one may have; 0 is no limit.
func fitting(f Flags, width int, columns []Column, rows [][]string) (shown []bool, last int) {
	shown, widths := make([]bool, len(columns)), make([]int, len(columns))
	for i, c := range columns {
		shown[i] = !c.Wide || f.Output == Wide
		if !f.NoHeaders {
			widths[i] = wrap.Columns(c.Name)
		}
		for _, row := range rows {
			widths[i] = max(widths[i], wrap.Columns(row[i]))
		}
		if i < len(columns)-1 {
			widths[i] = max(widths[i], minColumn-columnGap)
		}
	}
	if width <= 0 {
		return shown, 0
	}
	spare(columns, widths, shown, width)
	return shown, max(width-needs(widths, shown)+min(widths[len(widths)-1], minLast), minLast)
}

// Field is a line of a description: a label and its value.
type Field struct{ Label, Value string }

// PrintFields prints fields, each on a line of its own that begins with the indent, with the values below each other. Width is that of the terminal:
// what does not fit goes on below the beginning of the value; 0 is no limit. A field without a value is left out; the value of one is one text,
// whatever lines it has, or it could be taken for several fields.
func PrintFields(out io.Writer, indent string, width int, fields ...Field) error {
	widest := 0
	for _, f := range fields {
		widest = max(widest, wrap.Columns(f.Label))
	}
	var b strings.Builder
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		label := fmt.Sprintf("%s%-*s ", indent, widest+1, f.Label+":")
		for _, line := range wrap.Fill(label, strings.Repeat(" ", len(label)), strings.Join(strings.Fields(f.Value), " "), width) {
			b.WriteString(line + "\n")
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
