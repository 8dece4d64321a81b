// Command generate writes the reference of codes.
package main

import (
	"fmt"
	"os"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(answer.Reference()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
