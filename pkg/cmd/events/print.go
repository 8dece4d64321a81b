package events

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gangctl/gangctl/pkg/cli/printer"
	"github.com/gangctl/gangctl/pkg/cluster/occurrence"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
)

var columns = []printer.Column{{Name: "Last"}, {Name: "Type", Spare: 3}, {Name: "Object"}, {Name: "Reason"}, {Name: "Count", Spare: 4}, {Name: "First", Wide: true, Spare: 2}, {Name: "From", Wide: true, Spare: 1}, {Name: "Message"}}

// printTable shows ages to people, and times to programs.
func (o *Options) printTable(events []corev1.Event) error {
	now, width := o.IO.Clock.Now(), o.IO.Width()
	when := func(t time.Time) string {
		if width == 0 && !t.IsZero() {
			return t.UTC().Format(time.RFC3339)
		}
		return phrase.Since(t, now)
	}
	rows := make([][]string, 0, len(events))
	for i := range events {
		e := &events[i]
		rows = append(rows, []string{when(occurrence.Last(e)), e.Type, fmt.Sprintf("%s/%s", e.InvolvedObject.Kind, e.InvolvedObject.Name), e.Reason,
			strconv.Itoa(int(occurrence.Count(e))), when(occurrence.First(e)), cmp.Or(occurrence.By(e), "-"), e.Message})
	}
	return printer.PrintTable(o.IO.Out, o.Output, width, columns, rows)
}

func (o *Options) printObjects(events []corev1.Event) error {
	p, err := o.Output.Printer()
	if err != nil {
		return err
	}
	list := &corev1.EventList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "EventList"}, Items: events}
	for i := range list.Items {
		list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	}
	if list.Items == nil {
		list.Items = []corev1.Event{}
	}
	return p.PrintObj(list, o.IO.Out)
}
