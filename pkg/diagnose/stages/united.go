package stages

import (
	"maps"
	"regexp"
	"slices"

	"github.com/gangctl/gangctl/pkg/diagnose/patch"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang"
)

// united makes one finding of those by which several roles have the same in their way, and one fix of those that do the same for each.
func united(g *gang.Gang, findings []stage.Finding) []stage.Finding {
	if len(findings) < 2 {
		return findings
	}
	var all []stage.Finding
	var first []string // what each of all reads without the name of its role
	for _, f := range findings {
		i := slices.Index(first, withoutRole(f))
		if i < 0 {
			all, first = append(all, f), append(first, withoutRole(f))
			continue
		}
		all[i] = unite(g, all[i], f)
	}
	return all
}

// withoutRole identifies what a finding is about, whichever role it is of.
func withoutRole(f stage.Finding) string {
	return string(f.Code) + "\n" + renamed(f.Message, roleOf(f), "\x00")
}

func roleOf(f stage.Finding) string {
	role, _ := f.Facts["role"].(string)
	return role
}

// renamed is a text with another name for a role, as a whole word.
func renamed(text, role, to string) string {
	if role == "" {
		return text
	}
	name := regexp.QuoteMeta(role) + "|" + regexp.QuoteMeta(phrase.Member(role))
	return regexp.MustCompile(`\b(`+name+`)\b`).ReplaceAllLiteralString(text, to)
}

// unite adds to a finding that it is so for another role, too.
func unite(g *gang.Gang, f, other stage.Finding) stage.Finding {
	roles, _ := f.Facts["roles"].([]string)
	if len(roles) == 0 {
		roles = []string{roleOf(f)}
	}
	was := phrase.And(roles)
	if role := roleOf(other); role != "" && !slices.Contains(roles, role) {
		roles = append(slices.Clip(roles), role)
	}
	f.Facts = maps.Clone(f.Facts)
	if len(roles) > 1 {
		f.Facts["roles"] = roles
		before := f.Message
		if f.Message = renamed(f.Message, was, phrase.And(roles)); f.Message == before {
			f.Details = append(slices.DeleteFunc(slices.Clone(f.Details), func(d string) bool { return d == sameFor(was) }), sameFor(phrase.And(roles)))
		}
	}
	for _, d := range other.Details {
		if !slices.Contains(f.Details, d) {
			f.Details = append(slices.Clip(f.Details), d)
		}
	}
	for _, fix := range other.Fixes {
		f.Fixes = addFix(g, slices.Clone(f.Fixes), fix, was, roleOf(other))
	}
	return f
}

// sameFor is the line that names the roles of a finding whose sentence names none.
func sameFor(roles string) string { return "it is so for " + roles }

// addFix adds a fix for a role to those for others. Two edits of the job with the same sentence, whichever role it names, are one: neither is enough
// without the other.
func addFix(g *gang.Gang, fixes []stage.Fix, fix stage.Fix, roles, role string) []stage.Fix {
	i := slices.IndexFunc(fixes, func(has stage.Fix) bool {
		return has.Kind == fix.Kind && (has.Text == fix.Text || role != "" && renamed(has.Text, roles, "\x00") == renamed(fix.Text, role, "\x00"))
	})
	if i < 0 {
		return append(fixes, fix)
	}
	one := fixes[i]
	if one.Edit == nil || fix.Edit == nil {
		return fixes
	}
	text := one.Text
	if one.Text != fix.Text {
		text = renamed(one.Text, roles, phrase.And([]string{phrase.Member(roles), phrase.Member(role)}))
	}
	change := maps.Clone(one.Change)
	maps.Copy(change, fix.Change)
	both := func(spec *whatif.Spec) {
		one.Edit(spec)
		fix.Edit(spec)
	}
	fixes[i] = patch.Job(g, one.Kind, text, change, both)
	fixes[i].Cost = one.Cost
	return fixes
}
