package help

import (
	"github.com/spf13/cobra"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func newFormatting() *cobra.Command {
	return &cobra.Command{Use: "formatting", Short: "What is printed, where, and in which form", Long: `What is requested goes to standard output: tables, logs, objects, answers. Everything else goes to standard error: progress, notes,
questions, and errors, as "error: …" with "hint: …" below it. A list that failed is an error, never an empty table.

On a terminal, a table has the columns that there is room for, its last one is cut to the width, and messages have colours. Into a
pipe or a file nothing is left out, cut or coloured, and progress is a line at a time. --color always and --color never decide
otherwise. No meaning rests on colour alone.

The formats of -o, of which the help of each command names its own:

    wide                       more columns
    json, yaml                 the objects as the API server has them, without managedFields; or an answer of gangctl
    name                       KIND.GROUP/NAME, a line each, for xargs
    jsonpath=TEMPLATE          as in kubectl: jsonpath='{.items[*].metadata.name}'; of an answer: jsonpath='{.primary.code}'
    jsonpath-as-json=TEMPLATE  what the path finds, as JSON
    go-template=TEMPLATE       as in kubectl: go-template='{{.metadata.name}}'
    custom-columns=SPEC        as in kubectl: custom-columns=NAME:.metadata.name,UID:.metadata.uid

--no-headers leaves out the line of headers. Answers of gangctl itself carry an apiVersion, ` + answer.APIVersion + ` for instance, and only grow:
nothing that is in them today goes away or changes its meaning under the same apiVersion.

Commands that gangctl prints carry what was typed for this run: --context, --kubeconfig, --as, --profile, -n, --from and the like, and those
of kubectl also what the settings choose. A token reads REDACTED, and what an administrator is to type has no --as. Data (-o json, a
report) is the same for everybody, and its commands are without them: a program that runs one adds its own.

Ages are those of kubectl: 90s, 5m, 3h20m. Times are RFC 3339. Quantities are those of Kubernetes: 500m, 4, 16Gi.`}
}
