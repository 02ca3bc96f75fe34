import { stat } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import { parseJsonOr } from '../../core/base/json.js'
import { type BatchItem, findItemFault } from '../../fleet/batch.js'
import { badUsageError, CliError } from '../cli-error.js'
import { describeReadError } from '../load-file.js'
import { readLines } from './read-lines.js'

/** A line of the input that is no item. */
export interface DamagedLine {
  number: number
  /** What is wrong with it, as a sentence. */
  fault: string
}

/** What a first reading of the input finds. */
export interface InputSummary {
  /** How many items it has. */
  count: number
  /** The first lines that are no items, at most 20. */
  damaged: DamagedLine[]
  damagedCount: number
}

/** A file of items, one on each line. It is read as a stream, once to check it and once to run it. */
export class BatchInput {
  readonly #path: string
  readonly #name: string
  readonly #batch: string

  /** `batch`: the id of the batch. */
  constructor(name: string, cwd: string, batch: string) {
    this.#path = resolve(cwd, name)
    this.#name = name
    this.#batch = batch
  }

  /**
   * Reads all lines, and keeps only their ids.
   * @throws {CliError} `unreadable_file`, `duplicate_id`
   */
  async check(): Promise<InputSummary> {
    await this.#expectFile()
    const numbers = new Map<string, number>()
    const summary: InputSummary = { count: 0, damaged: [], damagedCount: 0 }
    for await (const { item, number } of this.#readAll((line) => {
      summary.damagedCount += 1
      if (summary.damaged.length < 20) summary.damaged.push(line)
    })) {
      const before = numbers.get(item.id)
      if (before !== undefined)
        throw new CliError(
          'duplicate_id',
          `Lines ${before} and ${number} of '${this.#name}' have the same id, '${item.id}': each line needs an id of its own.`,
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
      const fault = item === undefined ? 'is no JSON.' : findItemFault(this.#batch, item)
      if (fault === null) yield { item: item as BatchItem, number }
      else onDamaged({ number, fault })
    }
  }

  /** A pipe can be read only once. */
  async #expectFile(): Promise<void> {
    let isFile: boolean
    try {
      isFile = (await stat(this.#path)).isFile()
    } catch (error) {
      throw new CliError('unreadable_file', `INPUT: ${describeReadError(error, this.#name)}`, 'INPUT', {
        cause: error,
      })
    }
    if (!isFile)
      throw badUsageError(`INPUT must be a file, which is read twice: '${this.#name}' is none.`, 'INPUT')
  }
}

/** The id of a batch that has none of its own: the name of its input, as far as an id may have it. */
export function toBatchId(path: string): string {
  const name = basename(path).replace(/\.[^.]*$/, '')
  return name
    .replaceAll(/[^A-Za-z0-9_:@-]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 100)
}
