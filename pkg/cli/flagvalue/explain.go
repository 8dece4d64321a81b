package flagvalue

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Explain is the error of a flag for its value, with what the flag takes in place of which function of Go did not.
func Explain(flag *pflag.Flag, err error) error {
	var number *strconv.NumError
	if err == nil || !errors.As(err, &number) && !strings.HasPrefix(err.Error(), "time: ") {
		return err
	}
	switch kind := flag.Value.Type(); {
	case kind == "bool":
		return fmt.Errorf("must be true or false")
	case kind == "duration":
		return fmt.Errorf("must be a time with its unit, such as 90s, 10m or 12h")
	case strings.HasPrefix(kind, "float"):
		return fmt.Errorf("must be a number")
	}
	if number != nil && errors.Is(number.Err, strconv.ErrRange) {
		return fmt.Errorf("is out of range")
	}
	return fmt.Errorf("must be a whole number")
}

// ExplainParsed is Explain for an error of reading the command line.
func ExplainParsed(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	cause := invalid.Unwrap()
	return fmt.Errorf("%s%w", strings.TrimSuffix(err.Error(), cause.Error()), Explain(invalid.GetFlag(), cause))
}
