package whypending

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// giveBack tells the kernel that this process does without those parts of its program that it has in memory. Nearly all of
// it was touched when its packages were initialised, and is not touched again; what is needed after all comes back from the
// page cache. Where that does not work nothing is lost but memory.
func giveBack() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer f.Close()
	for _, part := range untouched(bufio.NewScanner(f), program) {
		// By address, because no slice of Go's lies there.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, part.start, part.end-part.start, syscall.MADV_DONTNEED)
	}
}

// part is a part of the address space.
type part struct{ start, end uintptr }

// untouched are the parts of a program that are as they are in its file, from /proc/PID/smaps: they cannot be written, and the
// loader has changed nothing in them.
func untouched(smaps *bufio.Scanner, program string) []part {
	var all []part
	var last part
	for smaps.Scan() {
		fields := strings.Fields(smaps.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"): // 00400000-02925000 r-xp 00000000 fe:00 1234 /usr/bin/gangctl
			last = part{}
			if len(fields) == 6 && fields[5] == program && !strings.Contains(fields[1], "w") {
				last = parsePart(fields[0])
			}
		case len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && last.end > last.start:
			all = append(all, last)
		}
	}
	return all
}

// parsePart reads START-END; it is empty if that is not what there is.
func parsePart(s string) part {
	from, to, _ := strings.Cut(s, "-")
	start, err := strconv.ParseUint(from, 16, strconv.IntSize)
	if err != nil {
		return part{}
	}
	end, err := strconv.ParseUint(to, 16, strconv.IntSize)
	if err != nil {
		return part{}
	}
	return part{uintptr(start), uintptr(end)}
}
