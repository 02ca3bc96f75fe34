import { createReadStream } from 'node:fs'

/** A line of a text file. */
export interface TextLine {
  text: string
  /** From 1. */
  number: number
  /** Where the next line begins, in bytes. */
  end: number
  /** False for a last line without a line break. */
  isWhole: boolean
}

/**
 * Reads a UTF-8 file line by line. Only a line feed ends a line: JSON text may hold other separators of Unicode, at which
 * `node:readline` splits.
 */
export async function* readLines(path: string): AsyncGenerator<TextLine> {
  let pieces: Buffer[] = []
  let number = 0
  let end = 0
  const take = (isWhole: boolean): TextLine => {
    const bytes = Buffer.concat(pieces)
    pieces = []
    number += 1
    end += bytes.length + (isWhole ? 1 : 0)
    const text = bytes.toString('utf8').replace(/\r$/, '')
    return { text: number === 1 ? text.replace(/^\uFEFF/, '') : text, number, end, isWhole }
  }
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0
    for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
      pieces.push(chunk.subarray(from, at))
      yield take(true)
      from = at + 1
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from))
  }
  if (pieces.length > 0) yield take(false)
}
