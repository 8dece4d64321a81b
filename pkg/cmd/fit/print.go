package fit

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cmd/cmdutil"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
)

var columns = []printer.Column{{Name: "GPUs/worker"}, {Name: "Workers"}, {Name: "GPUs"}, {Name: "Nodes"}, {Name: "Limited by"}}

// shownNodes is how many nodes are named.
const shownNodes = 4

func (o *Options) print(t Table) error {
	if !o.Output.IsTable() {
		if err := cmdutil.Encode(o.IO, &o.Output, t); err != nil {
			return err
		}
		return cmdutil.ExitError(t.Exit)
	}
	var rows [][]string
	missing := ""
	for _, s := range t.Sizes {
		limit := "-"
		if s.Limit != nil {
			limit = fmt.Sprintf("%s: %s", s.Limit.Code, s.Limit.Message)
		}
		rows = append(rows, []string{strconv.FormatInt(s.GPUs, 10), strconv.Itoa(int(s.Workers)), strconv.FormatInt(s.Total, 10), names(s.Nodes), limit})
		if len(s.Missing) > 0 {
			missing = strings.Join(s.Missing, "; ")
		}
	}
	if err := printer.PrintTable(o.IO.Out, printer.Flags{}, o.IO.Width(), columns, rows); err != nil {
		return err
	}
	if text := beside(t.Usual); text != "" {
		fmt.Fprintf(o.IO.ErrOut, "note: with each %s come%s, which is usual here, unless --cpu and --memory say otherwise\n", usage.Short(t.Resource), text)
	}
	if missing != "" {
		fmt.Fprintf(o.IO.ErrOut, "note: not seen: %s\n", missing)
	}
	return cmdutil.ExitError(t.Exit)
}

// beside is what comes with one GPU.
func beside(u usage.Usual) string {
	text := ""
	if u.CPU > 0 {
		text += " " + resource.NewMilliQuantity(u.CPU, resource.DecimalSI).String() + " CPU"
	}
	if u.Memory > 0 {
		text += " " + resource.NewQuantity(u.Memory, resource.BinarySI).String() + " memory"
	}
	return text
}

// names are the first nodes by name.
func names(nodes []string) string {
	switch {
	case len(nodes) == 0:
		return "-"
	case len(nodes) <= shownNodes:
		return strings.Join(nodes, ",")
	}
	return fmt.Sprintf("%s,+%d", strings.Join(nodes[:shownNodes], ","), len(nodes)-shownNodes)
}
