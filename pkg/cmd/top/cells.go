package top

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/cli/wrap"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/usage"
	"github.com/gangctl/gangctl/pkg/gang/request"
)

// none is the cell for nothing.
const none = "-"

// cores is CPU in cores: 8, 0.5.
func cores(milli int64) string {
	return strconv.FormatFloat(math.Round(float64(milli)/100)/10, 'f', -1, 64)
}

// gibi is memory in Gi, with a digit behind the point below ten.
func gibi(bytes int64) string {
	g := float64(bytes) / (1 << 30)
	if math.Abs(g) < 10 {
		return strconv.FormatFloat(math.Round(g*10)/10, 'f', -1, 64)
	}
	return strconv.FormatFloat(math.Round(g), 'f', -1, 64)
}

// age is a number of seconds in one or two units.
func age(seconds float64) string {
	return phrase.Age(time.Duration(seconds * float64(time.Second)))
}

// idle is an amount of device-minutes: 96 GPU-min, 12.5 GPU-h.
func idle(minutes float64) string {
	switch {
	case minutes <= 0:
		return none
	case minutes < 1:
		return "<1 GPU-min"
	case minutes < 600:
		return fmt.Sprintf("%.0f GPU-min", minutes)
	}
	return fmt.Sprintf("%.1f GPU-h", minutes/60)
}

// labelled reports how many of each kind there are; the kind is named where there are several.
func labelled(kinds []corev1.ResourceName, several bool, text func(corev1.ResourceName) string) string {
	var parts []string
	for _, kind := range kinds {
		s := text(kind)
		if s == "" {
			continue
		}
		if several {
			s = usage.Short(kind) + " " + s
		}
		parts = append(parts, s)
	}
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}

// noun is the noun for devices of a kind.
func noun(kind corev1.ResourceName) string {
	if request.IsGPU(kind) {
		return "GPU"
	}
	return "device"
}

// fold breaks a text at blanks; what follows the first line is indented.
func fold(text string, width int) []string {
	lines := wrap.Fill("", "  ", text, width)
	for i, line := range lines {
		lines[i] = wrap.Cut(line, width)
	}
	return lines
}
