package main

import (
	"fmt"
	"strings"
)

// row compares the schedulers at one workload.
type row struct {
	suite       string
	workload    workload
	stock, ours measurement
}

// table is the comparison at all workloads.
type table []row

// String renders the table as Markdown.
func (t table) String() string {
	var b strings.Builder
	b.WriteString("| benchmark | workload | pods/s, stock | ours | ratio | seconds, stock | ours | ratio |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range t {
		fmt.Fprintln(&b, r)
	}
	return b.String()
}

// String renders the row. The ratios say how many times faster ours is.
func (r row) String() string {
	cells := []string{r.workload.benchmark, r.workload.size}
	cells = append(cells, compared(r.stock.throughputs, r.ours.throughputs, "%.0f", false)...)
	cells = append(cells, compared(r.stock.durations, r.ours.durations, "%.1f", true)...)
	return "| " + strings.Join(cells, " | ") + " |"
}

// compared are the cells of two medians and how many times better the second is.
func compared(stock, ours []float64, format string, lessIsBetter bool) []string {
	a, hasStock := median(stock)
	b, hasOurs := median(ours)
	cells := []string{"", "", ""}
	if hasStock {
		cells[0] = fmt.Sprintf(format, a)
	}
	if hasOurs {
		cells[1] = fmt.Sprintf(format, b)
	}
	if lessIsBetter {
		a, b = b, a
	}
	if hasStock && hasOurs && a > 0 {
		cells[2] = fmt.Sprintf("%.1f", b/a)
	}
	return cells
}
