import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { parseJsonOr } from '../../core/base/json.js'
import { type BatchItem, findItemFault } from '../../fleet/batch.js'
import { badUsageError, CliError } from '../command.js'
import { fileError } from '../load.js'

interface DamagedLine {
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

export type BatchInput = ReturnType<typeof openBatchInput>

/** Opens a file with one item per line. It is streamed twice, first for the check and then for the run. */
export function openBatchInput(name: string, cwd: string, batch: string) {
  const path = resolve(cwd, name)

  async function* readItems(
    onDamaged?: (line: DamagedLine) => void,
  ): AsyncGenerator<{ item: BatchItem; number: number }> {
    for await (const { text, number } of readLines(path)) {
      if (text.trim() === '') continue
      const item = parseJsonOr(text, undefined)
      const fault = item === undefined ? 'is not valid JSON.' : findItemFault(batch, item)
      if (fault === null) yield { item: item as BatchItem, number }
      else onDamaged?.({ number, fault })
    }
  }

  /** @throws {CliError} `unreadable_file`, `duplicate_id` */
  async function check(): Promise<InputSummary> {
    const info = await stat(path).catch((cause: unknown) => {
      throw fileError('unreadable_file', 'INPUT', name, cause)
    })
    // A pipe can be read only once.
    if (!info.isFile())
      throw badUsageError(`INPUT is read twice, so it must be a file. '${name}' is not a file.`, 'INPUT')
    const numbers = new Map<string, number>()
    const summary: InputSummary = { count: 0, damaged: [], damagedCount: 0 }
    const items = readItems((line) => {
      summary.damagedCount += 1
      if (summary.damaged.length < 20) summary.damaged.push(line)
    })
    for await (const { item, number } of items) {
      const before = numbers.get(item.id)
      if (before !== undefined)
        throw new CliError(
          'duplicate_id',
          `Lines ${before} and ${number} of '${name}' have the same id, '${item.id}'. Each line needs a unique id.`,
          item.id,
        )
      numbers.set(item.id, number)
      summary.count += 1
    }
    return summary
  }

  return { check, readItems }
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
  /** From 1. */
  number: number
  /** The offset of the next line in bytes. */
  end: number
  /** False for a last line without a line break. */
  isWhole: boolean
}

/** Only a line feed ends a line. `node:readline` would also split at Unicode separators, which JSON may contain. */
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
