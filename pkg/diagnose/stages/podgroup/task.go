package podgroup

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/component"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/pkg/gang/dialect/volcano"
	"github.com/gangctl/gangctl/pkg/gang/kind/volcanojob"
)

// minTaskMember is the field of Volcano's PodGroup with the minimums of tasks.
const minTaskMember = "minTaskMember"

const (
	// maxTask is how much is shown of the name of a task, in bytes, and how long one is that a command names: users write any.
	maxTask = 63
	// maxTasks is how many tasks of pods are listed for programs, and looked at for one that was meant.
	maxTasks = 100
)

// unknownTask finds that a minimum is that of a task which no pod is of. Volcano compares the names of tasks exactly; our scheduler, whatever their case.
func unknownTask(c *stage.Context, out *stage.Result) {
	g, d := c.Gang, c.Gang.Decl
	u := c.View.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
	pods := g.ExistingPods()
	if d.Key.Dialect != gang.Volcano || len(d.RoleMin) == 0 || u == nil || len(pods) == 0 || g.Count(gang.Missing) > 0 {
		return
	}
	f := gang.Fields{Object: u}
	mins, have := f.Map("spec", minTaskMember), map[string]bool{}
	for _, pod := range pods {
		if task := volcano.TaskOf(pod); task != "" {
			have[task] = true
		}
	}
	if g.Kind.GroupKind() == volcanojob.GroupKind() { // pods of a task may follow those of another
		for _, r := range g.Roles {
			have[r.Name] = true
		}
	}
	tasks := slices.Sorted(maps.Keys(have))
	folds := component.Ours(c.View, g.Scheduler)
	for _, task := range slices.Sorted(maps.Keys(mins)) {
		n := f.Int32("spec", minTaskMember, task)
		known := func(other string) bool { return other == task || folds && strings.EqualFold(other, task) }
		if n > 0 && !slices.ContainsFunc(tasks, known) {
			out.Add(noTask(c, task, n, tasks))
			return
		}
	}
}

func noTask(c *stage.Context, task string, n int32, tasks []string) *stage.Finding {
	d, of := c.Gang.Decl, "they name none (annotation volcano.sh/task-spec)"
	if len(tasks) > 0 {
		of = "they are of " + phrase.NamesOf(tasks, shown)
	}
	tasks = slices.DeleteFunc(tasks, func(t string) bool { return len(t) > maxTask })
	tasks = tasks[:min(len(tasks), maxTasks)]
	f := stage.Found(answer.MinMemberTooHigh, "%s wants %s of task %s, and no pod is of that: %s", stage.DescribeGroup(*d), phrase.Count(n, "member"), shown(task), of).
		Fact("minMember", n).Fact("replicas", 0).Fact("task", shown(task)).Fact("tasks", tasks).
		SeeGroup(*d, ".spec."+minTaskMember)
	if len(task) > maxTask {
		return f
	}
	nearest := suggest.Nearest(task, tasks)
	if i := slices.IndexFunc(tasks, func(other string) bool { return strings.EqualFold(other, task) }); i >= 0 {
		nearest = tasks[i]
		f.Detail("scheduler %s compares the names of tasks exactly", c.Gang.Scheduler)
	}
	if nearest == "" {
		return f.Fix(setTasks(c, fmt.Sprintf("take task %s out of %s of PodGroup %s", task, minTaskMember, d.Key.Name), map[string]any{task: nil}))
	}
	return f.Fix(setTasks(c, fmt.Sprintf("write %s instead of %s in %s of PodGroup %s", nearest, task, minTaskMember, d.Key.Name), map[string]any{task: nil, nearest: int64(n)}))
}

// shown is the name of a task as sentences have it.
func shown(task string) string { return phrase.Shorten(task, maxTask) }

// setTasks is a fix that changes minimums of tasks; nil takes one out.
func setTasks(c *stage.Context, text string, change map[string]any) stage.Fix {
	d := c.Gang.Decl
	return stage.Fix{
		Action: answer.Action{Kind: answer.Fix, By: answer.User, Text: text, Change: map[string]any{minTaskMember: change},
			Command: command.MergePatch(d.Key.Namespace, strings.ToLower(d.Kind.Kind)+"."+d.Kind.Group, d.Key.Name, map[string]any{"spec": map[string]any{minTaskMember: change}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.Edit(s, d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name, func(u *unstructured.Unstructured) {
				for task, n := range change {
					if n == nil {
						unstructured.RemoveNestedField(u.Object, "spec", minTaskMember, task)
					} else {
						whatif.Set(u, n, "spec", minTaskMember, task)
					}
				}
			})
		},
	}
}

// setTask is a fix that sets the minimum of a task of the group: in the Job, where Volcano's controller writes it from there.
func setTask(c *stage.Context, task string, n int32) stage.Fix {
	g := c.Gang
	fix := setTasks(c, fmt.Sprintf("set %s.%s to %d", minTaskMember, task, n), map[string]any{task: int64(n)})
	i := slices.IndexFunc(g.Roles, func(r gang.Role) bool { return r.Name == task })
	if g.Kind.GroupKind() == volcanojob.GroupKind() && g.Decl.Owner == g.Meta.UID && i >= 0 {
		fix.Text = fmt.Sprintf("set minAvailable of task %s to %d", task, n)
		fix.Command = command.JSONPatch(g.Meta.Namespace, strings.ToLower(g.Kind.GroupKind().String()), g.Meta.Name,
			command.Patch{Op: "add", Path: command.Pointer([]string{"spec", "tasks", strconv.Itoa(i), "minAvailable"}), Value: n})
	}
	return fix
}

// roleTooHigh finds that more members of a role are needed than the job makes. The role is in lower case, as in the declaration.
func roleTooHigh(c *stage.Context, role string, r *gang.Role, total int32) *stage.Finding {
	d := c.Gang.Decl
	n := d.RoleMin[role]
	f := minTooHigh(c, fmt.Sprintf("%s wants %d members of %s, but the job makes %d", stage.DescribeGroup(*d), n, r.Name, r.Replicas), total)
	u := c.View.Object(d.Kind.GroupKind(), d.Key.Namespace, d.Key.Name)
	if d.Key.Dialect != gang.Volcano || u == nil {
		return f
	}
	f.Fixes, f.Evidence = nil, nil
	f.Fact("minMember", n).Fact("replicas", r.Replicas).Fact("role", r.Name).
		SeeGroup(*d, ".spec."+minTaskMember)
	fields := gang.Fields{Object: u}
	for _, task := range slices.Sorted(maps.Keys(fields.Map("spec", minTaskMember))) {
		if strings.EqualFold(task, role) {
			f.Fix(setTask(c, task, r.Replicas))
		}
	}
	return f
}
