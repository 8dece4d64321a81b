package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang/dialect/kueue"
)

// unqueued adds that a suspended job was probably meant for a queue of Kueue, which does not know it: its label has another key, or is where Kueue does not look.
func unqueued(c *stage.Context, f *stage.Finding) {
	g := c.Gang
	if !queueing.Installed(c.View) {
		return
	}
	where, key, queue := meantQueue(c)
	if key == "" {
		return
	}
	f.Message = fmt.Sprintf("%s is suspended, and Kueue does not know it: its queue is in the %s, where Kueue does not look", g.Meta.Name, where)
	f.Detail("Kueue reads the queue of a %s in its label %s, and resumes none without", g.Kind.Kind, kueue.QueueLabel).Fact("queueKey", key)
	have := localQueues(c)
	if !slices.Contains(have, queue) {
		f.Detail("LocalQueue %q does not exist in namespace %s; there are: %s", queue, g.Meta.Namespace, phrase.Names(have))
		if queue = suggest.Nearest(queue, have); queue == "" {
			return
		}
	}
	f.Fix(patch.Labelled(g, kueue.QueueLabel, queue, "queue", "label it for LocalQueue "+queue+", and Kueue admits it"))
}

// runsUnqueued remarks that a job which is not suspended names a queue of Kueue where that does not look: it waits in none.
func runsUnqueued(c *stage.Context, out *stage.Result) {
	g := c.Gang
	if g.Suspended || !queueing.Installed(c.View) || queueing.Managed(c.View, g) {
		return
	}
	where, key, queue := meantQueue(c)
	if key != "" && queueing.Object(c.View, "LocalQueue", g.Meta.Namespace, queue) != nil {
		out.Note("%s is in no queue of Kueue: it names LocalQueue %s in the %s, where Kueue does not look", g.Meta.Name, queue, where)
	}
}

// maxQueue is how much of an annotation is taken for a name.
const maxQueue = 63

// meantQueue is where a job names a queue that Kueue does not read, as the end of a sentence, by which key, and the queue; the key is empty if it names none.
func meantQueue(c *stage.Context) (where, key, queue string) {
	g := c.Gang
	for _, key := range slices.Sorted(maps.Keys(g.Meta.Labels)) {
		if alike(c, key, g.Meta.Labels[key]) {
			return "label " + key, key, g.Meta.Labels[key]
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.Meta.Annotations)) {
		if key == kueue.QueueLabel || alike(c, key, g.Meta.Annotations[key]) {
			return "annotation " + key, key, phrase.Shorten(g.Meta.Annotations[key], maxQueue)
		}
	}
	for _, role := range g.Roles {
		for _, key := range slices.Sorted(maps.Keys(role.Template.Labels)) {
			if key == kueue.QueueLabel || alike(c, key, role.Template.Labels[key]) {
				return "label " + key + " of the pods of " + role.Name, key, role.Template.Labels[key]
			}
		}
	}
	return "", "", ""
}

// likeLocal reports whether a value is the name of a LocalQueue of the namespace, or nearly.
func likeLocal(c *stage.Context, value string) bool {
	have := localQueues(c)
	return slices.Contains(have, value) || suggest.Nearest(value, have) != ""
}

// localQueues are those of the namespace.
func localQueues(c *stage.Context) (names []string) {
	for _, u := range c.View.Snap.Custom[kueue.Kind("LocalQueue")] {
		if u.GetNamespace() == c.Gang.Meta.Namespace {
			names = append(names, u.GetName())
		}
	}
	return names
}

// bareKeys are how people write the name of the label without its domain.
var bareKeys = []string{"queue-name", "queue_name", "queuename"}

// alike reports whether a key was probably meant for the label by which Kueue finds the queue of a job, given what it has: a slip in its name, or in its domain. Without a domain it
// has to be that name, and to have a queue of Kueue's, as others have queues, too.
func alike(c *stage.Context, key, value string) bool {
	domain, name, qualified := strings.Cut(strings.ToLower(key), "/")
	if !qualified {
		domain, name = "", domain
	}
	own, ownName, _ := strings.Cut(kueue.QueueLabel, "/")
	near := name == ownName || suggest.Nearest(name, []string{ownName}) != ""
	switch {
	case key == kueue.QueueLabel || kueue.Written(key):
		return false
	case domain == "":
		return slices.Contains(bareKeys, name) && likeLocal(c, value)
	case domain == own || strings.Contains(domain, "kueue") || suggest.Nearest(domain, []string{own}) != "":
		return near || name == "queue" || name == "local-queue" || name == "localqueue"
	}
	return false
}
