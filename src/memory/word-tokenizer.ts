type Stem = (word: string) => string

/** English words that say nothing about what is asked for. They are looked for only when there is nothing else. */
const functionWords = new Set(
  `a about an and any are as at be but by can could did do does for from had has have how i if in into is it its me my
  no not of on or our please should so some tell than that the their them then there these they this to us was we were
  what when where which who why will with would you your`.split(/\s+/),
)

/** Closes every indexed word, so that a search for its beginning can be told from a search for the whole. */
const wordEnd = '$'

/** From this length on, a word of a query also finds longer words that begin with it. */
const prefixLength = 5

const word = /[\p{L}\p{M}\p{N}]+/gu

/** Scripts that put no spaces between words. */
const unspaced = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmr}\p{sc=Mymr}]/u

/**
 * How texts become words: in every script, without case and accents, reduced to their English stem. Words of a document
 * are closed; they never are the name of a property that objects have of themselves (`constructor`), which the index
 * would stumble over.
 */
export function createWordTokenizer(stem: Stem) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: 'word' })
  const divide = (run: string) =>
    unspaced.test(run) ? Array.from(segmenter.segment(run), ({ segment }) => segment) : [run]
  const words = (text: string) => (normalizeText(text).match(word) ?? []).flatMap(divide)
  return {
    ofDocument: (text: string) => removeDuplicates(words(text).map((each) => stem(each) + wordEnd)),
    ofQuery: (text: string) => {
      const all = words(text)
      const telling = all.filter((each) => !functionWords.has(each))
      return removeDuplicates(
        (telling.length > 0 ? telling : all).map((each) => {
          const stemmed = stem(each)
          return stemmed.length >= prefixLength ? stemmed : stemmed + wordEnd
        }),
      )
    },
  }
}

/** One form for letters that look alike, in lower case and without Latin, Greek and Cyrillic accents. */
function normalizeText(text: string): string {
  return text
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036F]/g, '')
    .normalize('NFC')
    .toLowerCase()
}

function removeDuplicates(words: readonly string[]): string[] {
  return [...new Set(words)]
}
