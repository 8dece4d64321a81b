// Command generate draws a picture from its source.
package main

import (
	"fmt"
	"os"

	"github.com/gangctl/gangctl/test/architecture"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: generate SOURCE PICTURE")
		os.Exit(2)
	}
	if err := draw(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func draw(source, picture string) error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	drawing, err := architecture.Parse(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	svg, err := drawing.SVG()
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	return os.WriteFile(picture, []byte(svg), 0o644)
}
