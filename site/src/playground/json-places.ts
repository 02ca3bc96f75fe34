import { findNodeAtLocation, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'

/** An error and its position in the text. */
export interface Mark {
  from: number
  to: number
  /** The line where the error starts. */
  line: number
  message: string
}

/** Parses JSON. Returns the errors of invalid text with their positions. */
export function readJson(text: string): { value: unknown; marks: Mark[] } {
  const errors: ParseError[] = []
  parseTree(text, errors, { allowTrailingComma: false, disallowComments: true })
  const marks = errors.map(({ error, offset, length }) =>
    createMark(
      text,
      [offset, offset + Math.max(length, 1)],
      `Not valid JSON: ${spaced(printParseErrorCode(error))}.`,
    ),
  )
  if (text.trim() === '') return { value: undefined, marks: [createMark(text, [0, 0], 'The text is empty.')] }
  return { value: marks.length === 0 ? JSON.parse(text) : undefined, marks }
}

/** The position of the value at a path like `turns[1].text`, or of the nearest enclosing value. */
export function markPath(text: string, path: string, message: string): Mark {
  const tree = parseTree(text)
  const parts = Array.from(
    path.matchAll(/\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.[\]]+)/g),
    ([, quoted, index, name]) => (index === undefined ? (quoted ?? name ?? '') : Number(index)),
  )
  for (let length = parts.length; length >= 0; length -= 1) {
    const node = tree && findNodeAtLocation(tree, parts.slice(0, length))
    if (!node) continue
    // For a property, the range includes its name. For a list or an object, only the start is marked.
    const from = node.parent?.type === 'property' ? node.parent.offset : node.offset
    const isLarge = node.type === 'object' || node.type === 'array'
    return createMark(text, [from, isLarge ? node.offset + 1 : node.offset + node.length], message)
  }
  return createMark(text, [0, 1], message)
}

function createMark(text: string, [begin, end]: readonly [number, number], message: string): Mark {
  const from = Math.min(begin, text.length)
  return { from, to: Math.min(end, text.length), line: text.slice(0, from).split('\n').length, message }
}

function spaced(code: string): string {
  return code
    .replaceAll(/([A-Z])/g, ' $1')
    .trim()
    .toLowerCase()
}
