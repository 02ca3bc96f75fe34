import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { StatewrightError, describeError } from '../core/base/errors.js'
import { type SavedView, savedViewsSchema } from './requests.js'

export class SavedViews {
  readonly #file: string | undefined
  #views: Promise<SavedView[]> | undefined

  constructor(file: string | undefined) {
    this.#file = file
  }

  read(): Promise<SavedView[]> {
    return (this.#views ??= this.#load())
  }

  /** @throws {StatewrightError} `store_unavailable` if the file cannot be written */
  async write(views: SavedView[]): Promise<void> {
    if (this.#file !== undefined) await writeWhole(this.#file, JSON.stringify({ views }, null, 2))
    this.#views = Promise.resolve(views)
  }

  /** A missing or damaged file means that there are no views. */
  async #load(): Promise<SavedView[]> {
    if (this.#file === undefined) return []
    try {
      const parsed = savedViewsSchema.safeParse(JSON.parse(await readFile(this.#file, 'utf8')))
      return parsed.data?.views ?? []
    } catch {
      return []
    }
  }
}

async function writeWhole(file: string, text: string): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true })
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  } catch (cause) {
    const what = `The saved views cannot be written to ${file}: ${describeError(cause)}`
    throw new StatewrightError('store_unavailable', what, undefined, { cause })
  }
}
