package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/install"
	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/iostreams"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/cluster/kube"
	"github.com/gangctl/gangctl/pkg/setup/check/facts"
)

// Installer brings a cluster to what an installation is to be.
type Installer struct {
	IO     *iostreams.IOStreams
	Client *kube.Client
	Flags  *Flags
	// Before, if there is one, may refuse the objects that are to be written, before any is.
	Before func(context.Context, []*unstructured.Unstructured) error
	// Show prints what changes in each object with its line, as upgrades do.
	Show bool

	counts map[apply.Action]int
	err    error // of printing
}

// Apply applies the objects of a scheduler, prunes what was found and is no longer among them, and waits until it is ready. If
// an object could not be applied, nothing is pruned and nothing waited for: what is there may still be needed.
func (i *Installer) Apply(ctx context.Context, scheduler install.Scheduler, found *Installation) error {
	found.Warn(i.IO.ErrOut)
	if err := found.allows(scheduler); err != nil {
		return err
	}
	objects, err := scheduler.Objects()
	if err != nil {
		return err
	}
	if objects, err = i.leaveOthers(ctx, objects); err != nil {
		return err
	}
	if objects, err = i.leaveUnserved(ctx, objects); err != nil {
		return err
	}
	if err := i.nameNeighbours(ctx, scheduler.Serve); err != nil {
		return err
	}
	i.counts = map[apply.Action]int{}
	a := &apply.Applier{Client: i.Client.Dynamic, Force: i.Flags.force, DryRun: i.dry(), Report: i.report, Ours: facts.Ours, Unless: found.changed}
	if err := i.refuse(ctx, a, found, objects); err != nil {
		return err
	}
	if err = a.Apply(ctx, objects); err == nil {
		err = a.Prune(ctx, found.Objects, objects)
	}
	if err == nil {
		err = i.err
	}
	fmt.Fprintf(i.IO.ErrOut, "%s%s\n", i.summary(), i.suffix())
	if err != nil || i.dry() || !i.Flags.wait {
		return pointToCheck(err)
	}
	if err := i.wait(ctx, scheduler); err != nil {
		return err
	}
	return i.stillOurs(ctx, objects)
}

// stillOurs returns an error if another installation at the same time has replaced the settings: what was typed for this one is lost then.
func (i *Installer) stillOurs(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		there, err := apply.Get(ctx, i.Client.Dynamic, object)
		if err != nil {
			return err
		}
		if there == nil || there.GetAnnotations()[SettingsAnnotation] != object.GetAnnotations()[SettingsAnnotation] {
			return errMeanwhile()
		}
	}
	return nil
}

// refuse returns why the objects cannot be written, before any is: half an installation is worse than none.
func (i *Installer) refuse(ctx context.Context, a *apply.Applier, found *Installation, objects []*unstructured.Unstructured) error {
	if i.Before != nil {
		if err := i.Before(ctx, objects); err != nil {
			return err
		}
	}
	err := a.Conflicts(ctx, objects)
	if err == nil {
		return nil
	}
	outcome := "is not installed, and nothing is changed"
	if found.Namespace != "" {
		outcome = "stays as it is"
	}
	return fmt.Errorf("the gang scheduler %s: %w", outcome, err)
}

// pointToCheck adds where all missing rights are listed at once, of which an error names the first.
func pointToCheck(err error) error {
	f := failure.From(err)
	if f == nil || !f.LacksRights() {
		return err
	}
	return f.WithHint("%s\nall that is missing, at once: gangctl check --pre", f.Hint)
}

func (i *Installer) wait(ctx context.Context, scheduler install.Scheduler) error {
	progress := func(step string) { fmt.Fprintf(i.IO.ErrOut, "%s: %s\n", install.SchedulerInstance, step) }
	err := apply.WaitReady(ctx, i.Client.Typed, scheduler.Namespace, install.SchedulerInstance, i.Flags.timeout, progress)
	if err == nil {
		fmt.Fprintf(i.IO.ErrOut, "%s %s is ready in namespace %s\n", install.SchedulerInstance, scheduler.Version, scheduler.Namespace)
	}
	return err
}

// dry reports whether nothing is to change.
func (i *Installer) dry() bool { return i.Flags.diff || i.Flags.dryRun == dryRunServer }

func (i *Installer) suffix() string {
	if i.dry() {
		return " (server dry run)"
	}
	return ""
}

// report is a line for each object; --diff prints what changes instead.
func (i *Installer) report(r apply.Result) {
	i.counts[r.Action]++
	if !i.Flags.diff {
		fmt.Fprintf(i.IO.Out, "%s %s%s\n", apply.Name(r.Object), r.Action, i.suffix())
	}
	if !i.Flags.diff && (!i.Show || r.Action != apply.Configured) {
		return
	}
	diff, err := r.Diff(install.LabelVersion) // which differs in every object
	if err != nil && i.err == nil {
		i.err = err
	}
	out := i.IO.Out
	if !i.Flags.diff {
		out = i.IO.ErrOut // apart from the lines, for the reader
	}
	fmt.Fprint(out, diff)
}

func (i *Installer) summary() string {
	var parts []string
	for _, action := range []apply.Action{apply.Created, apply.Configured, apply.Unchanged, apply.Pruned} {
		parts = append(parts, fmt.Sprintf("%d %s", i.counts[action], action))
	}
	return strings.Join(parts, ", ")
}

// leaveOthers takes out what another tool, user or installation of gangctl created before, and reports it: the namespace and the PodGroup
// definition are used as they are. Everything else has names of ours.
func (i *Installer) leaveOthers(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var ours []*unstructured.Unstructured
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Namespace" && kind != "CustomResourceDefinition" {
			ours = append(ours, object)
			continue
		}
		there, err := apply.Get(ctx, i.Client.Dynamic, object)
		if err != nil {
			return nil, err
		}
		if there == nil || install.Of(there, object.GetLabels()[install.LabelInstance]) {
			ours = append(ours, object)
			continue
		}
		if err := usable(there, object); err != nil {
			return nil, err
		}
		fmt.Fprintf(i.IO.ErrOut, "note: %s is there already, made by %s: it is used as it is\n", apply.Describe(object), apply.Owner(there))
	}
	return ours, nil
}

// leaveUnserved takes out what the API server does not serve and the scheduler works without, and reports it.
func (i *Installer) leaveUnserved(ctx context.Context, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	for _, kind := range apply.Optional() {
		is := func(o *unstructured.Unstructured) bool { return o.GetKind() == kind.Kind }
		at := slices.IndexFunc(objects, is)
		if at < 0 {
			continue
		}
		served, err := apply.Served(ctx, i.Client.Dynamic, kind)
		if err != nil {
			return nil, err
		}
		if !served {
			fmt.Fprintf(i.IO.ErrOut, "note: %s is left out: the API server does not serve its kind, %s\n", apply.Describe(objects[at]), unlimited)
			objects = slices.DeleteFunc(objects, is)
		}
	}
	return objects, nil
}

// unlimited is the note that the policy of the scheduler's account is not there.
const unlimited = "so what the scheduler may change of jobs is limited by its role only"
