package podgroup

import (
	"github.com/gangctl/gangctl/pkg/cli/shell"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/gang"
)

// withPartners reports whether other jobs, whose pods name the same group, have or make the members that this one does not, and finds which of them have
// not made theirs. Total is how many members this job has.
func withPartners(c *stage.Context, out *stage.Result, total int32) bool {
	g := c.Gang
	exist, lack := g.Created(), []*gang.Gang{}
	for _, partner := range c.View.Partners(g) {
		total = gang.Sum(total, partner.Total())
		if exist += partner.Created(); partner.Created() < partner.Total() {
			lack = append(lack, partner)
		}
	}
	switch {
	case g.Min > total:
		return false
	case len(lack) == 0 || exist >= g.Min || c.View.Assumed:
		return true
	}
	short := lack[0]
	f := stage.Found(answer.BelowQuorum, "%s %s, and the gang needs %d: %s %s, whose pods join it, has made %d of %d", phrase.Count(exist, "pod"), phrase.Verb(int(exist), "exists", "exist"), g.Min,
		short.Kind.Kind, short.Meta.Name, short.Created(), short.Total()).
		Fact("exist", exist).Fact("needed", g.Min)
	for _, other := range lack[1:] {
		f.Detail("%s %s has made %d of %d", other.Kind.Kind, other.Meta.Name, other.Created(), other.Total())
	}
	if c.Diagnose != nil {
		if why := c.Diagnose(short.Job); why.Primary != nil && why.Verdict != answer.FitsNow {
			text, _ := c.WhyOther(why)
			f.Detail("why %s has not made the others: %s", short.Meta.Name, text)
			if why.Verdict == answer.Blocked {
				f.As(answer.Blocked, why.Who)
			}
		}
	}
	out.Add(f.Run(shell.Join("gangctl", "-n", short.Meta.Namespace, "why-pending", short.Reader.Argument(short.Meta.Name))))
	return true
}
