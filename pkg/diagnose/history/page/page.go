// Package page renders a report as one HTML page that needs nothing else: no script, no font, no picture and no style from
// elsewhere, so that it can be mailed, attached to a ticket, and read in ten years. It is pure: the same report gives the same bytes.
package page

import (
	"embed"
	"fmt"
	"html/template"
	"io"

	"github.com/gangctl/gangctl/pkg/diagnose/history"
)

//go:embed page.html style.css
var files embed.FS

// Write writes the page.
func Write(out io.Writer, r *history.Report) error {
	style, err := files.ReadFile("style.css")
	if err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(functions(r.At)).ParseFS(files, "page.html")
	if err != nil {
		return err
	}
	v, err := newView(r, template.CSS(style)) //nolint:gosec // the style is ours, from this package
	if err != nil {
		return err
	}
	if err := t.Execute(out, v); err != nil {
		return fmt.Errorf("write report on %s %s/%s: %w", r.Job.Kind, r.Job.Namespace, r.Job.Name, err)
	}
	return nil
}
