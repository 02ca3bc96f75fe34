import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { parseJsonOr } from '../../core/base/json.js'
import { type BatchItem, findItemFault } from '../../fleet/batch.js'
import { badUsageError, CliError } from '../command.js'
import { describeFileError } from '../load.js'

export interface DamagedLine {
  number: number
  /** The problem, phrased to complete a sentence. */
  fault: string
}

export interface InputSummary {
  count: number
  /** The first damaged lines, up to 20. */
  damaged: DamagedLine[]
  damagedCount: number
}

/** A file with one item per line. It is streamed twice, first for the check and then for the run. */
export class BatchInput {
  readonly #path: string
  readonly #name: string
  readonly #batch: string

  /** `batch` is the id of the batch. */
  constructor(name: string, cwd: string, batch: string) {
    this.#path = resolve(cwd, name)
    this.#name = name
    this.#batch = batch
  }

  /** @throws {CliError} `unreadable_file`, `duplicate_id` */
  async check(): Promise<InputSummary> {
    await this.#expectFile()
    const numbers = new Map<string, number>()
    const summary: InputSummary = { count: 0, damaged: [], damagedCount: 0 }
    const items = this.#readAll((line) => {
      summary.damagedCount += 1
      if (summary.damaged.length < 20) summary.damaged.push(line)
    })
    for await (const { item, number } of items) {
      const before = numbers.get(item.id)
      if (before !== undefined)
        throw new CliError(
          'duplicate_id',
          `Lines ${before} and ${number} of '${this.#name}' have the same id, '${item.id}'. Each line needs a unique id.`,
          item.id,
        )
      numbers.set(item.id, number)
      summary.count += 1
    }
    return summary
  }

  async *readItems(): AsyncGenerator<BatchItem> {
    for await (const { item } of this.#readAll(() => undefined)) yield item
  }

  async *#readAll(
    onDamaged: (line: DamagedLine) => void,
  ): AsyncGenerator<{ item: BatchItem; number: number }> {
    for await (const { text, number } of readLines(this.#path)) {
      if (text.trim() === '') continue
      const item = parseJsonOr(text, undefined)
      const fault = item === undefined ? 'is not valid JSON.' : findItemFault(this.#batch, item)
      if (fault === null) yield { item: item as BatchItem, number }
      else onDamaged({ number, fault })
    }
  }

  /** Rejects pipes, because a pipe can be read only once. */
  async #expectFile(): Promise<void> {
    let isFile: boolean
    try {
      isFile = (await stat(this.#path)).isFile()
    } catch (cause) {
      const why = describeFileError(cause, this.#name, 'read')
      throw new CliError('unreadable_file', `INPUT: ${why}`, 'INPUT', { cause })
    }
    if (!isFile)
      throw badUsageError(
        `INPUT is read twice, so it must be a file. '${this.#name}' is not a file.`,
        'INPUT',
      )
  }
}

/** The default id of a batch: the name of its input without invalid characters. */
export function toBatchId(path: string): string {
  const name = basename(path).replace(/\.[^.]*$/, '')
  return name
    .replaceAll(/[^A-Za-z0-9_:@-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 100)
}

export interface TextLine {
  text: string
  /** The number of the line, from 1. */
  number: number
  /** The offset of the next line in bytes. */
  end: number
  /** Whether the line is complete. False for a last line without a line break. */
  isWhole: boolean
}

/**
 * Reads a UTF-8 file line by line. Only a line feed ends a line. JSON text may contain other Unicode separators, at
 * which `node:readline` would split.
 */
export async function* readLines(path: string): AsyncGenerator<TextLine> {
  let pieces: Buffer[] = []
  let number = 0
  let end = 0
  const endLine = (isWhole: boolean): TextLine => {
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
      yield endLine(true)
      from = at + 1
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from))
  }
  if (pieces.length > 0) yield endLine(false)
}
