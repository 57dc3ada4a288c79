package hcl

import (
	"bytes"
	"slices"

	hcl2 "github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/stsd/stsd/jobspecs"
)

// WithImagesShown writes images that stand in the place of a set's own ones, by
// container, into what is shown of its sources, with what is written there as a comment
// behind: what is read, and applied again, is the template that it was made into.
func WithImagesShown(sources []jobspecs.Source, set string, images map[string]string) []jobspecs.Source {
	if len(images) == 0 {
		return sources
	}
	out := make([]jobspecs.Source, len(sources))
	for i, s := range sources {
		out[i] = jobspecs.Source{Name: s.Name, Text: imagesShown(s, set, images)}
	}
	return out
}

func imagesShown(s jobspecs.Source, set string, images map[string]string) []byte {
	text := plainText(s.Text)
	f, ds := hclsyntax.ParseConfig(text, s.Name, hcl2.InitialPos)
	if ds.HasErrors() {
		return s.Text
	}
	written := map[string]hcl2.Range{}
	for _, block := range f.Body.(*hclsyntax.Body).Blocks {
		if block.Type == "statefulset" && len(block.Labels) == 1 && block.Labels[0] == set {
			written = imagesWritten(block.Body)
		}
	}
	names := sortedKeys(images)
	slices.SortStableFunc(names, func(a, b string) int { return written[b].Start.Byte - written[a].Start.Byte }) // from the end
	for _, name := range names {
		if at, ok := written[name]; ok {
			text = slices.Replace(text, at.Start.Byte, at.End.Byte, imageShown(text[at.Start.Byte:at.End.Byte], images[name])...)
		}
	}
	return text
}

// imagesWritten are the places of the images of a set's containers.
func imagesWritten(set *hclsyntax.Body) map[string]hcl2.Range {
	out := map[string]hcl2.Range{}
	for _, c := range set.Blocks {
		a := c.Body.Attributes["image"]
		if a != nil && slices.Contains(containerKinds, c.Type) && len(c.Labels) == 1 {
			out[c.Labels[0]] = a.Expr.Range()
		}
	}
	return out
}

// imageShown is an image with the expression in whose place it stands, if that is
// fit for a comment.
func imageShown(before []byte, image string) []byte {
	shown, _ := bytes.CutSuffix(before, []byte("\n"))
	text := quote(image) + " /* set image; the file says " + string(shown) + " */"
	if bytes.ContainsAny(shown, "\n") || bytes.Contains(shown, []byte("*/")) {
		text = quote(image) + " /* set image; the file says another one */"
	}
	if len(shown) < len(before) { // the end of a heredoc
		text += "\n"
	}
	return []byte(text)
}
