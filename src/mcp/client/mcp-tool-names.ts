import { sha256 } from '../../../guards/lib/sha256.js'

/** What providers accept as the name of a tool. */
const maxLength = 64

/** Characters of a server's name that stay in the names of its tools. */
const maxPrefix = 32

/** Names that one server may use up, so that one that changes its list for ever fills no memory. */
const maxNames = 10_000

/**
 * The names by which the model calls a server's tools: `server_tool`, of letters, digits, `_` and `-`. A tool has its
 * name for good, so that no other tool ever answers to a name that was meant for it.
 */
export class ToolNames {
  readonly #prefix: string
  readonly #names = new Map<string, string>()
  readonly #taken = new Set<string>()

  constructor(server: string) {
    this.#prefix = fitName(server, maxPrefix).replaceAll(/^_+|_+$/g, '') || 'mcp'
  }

  /** Undefined when the server has used up its names. */
  findName(tool: string): string | undefined {
    const known = this.#names.get(tool)
    if (known !== undefined || this.#names.size === maxNames) return known
    const name = this.#createFreeName(`${this.#prefix}_${tool}`)
    this.#names.set(tool, name)
    this.#taken.add(name)
    return name
  }

  #createFreeName(wanted: string): string {
    for (let number = 1; ; number += 1) {
      const ending = number === 1 ? '' : `_${number}`
      const name = fitName(wanted, maxLength - ending.length) + ending
      if (!this.#taken.has(name)) return name
    }
  }
}

/** What is too long keeps its beginning, and ends in a hash of the whole. */
function fitName(text: string, limit: number): string {
  const name = text.replaceAll(/[^a-zA-Z0-9_-]+/g, '_')
  return name.length <= limit ? name : `${name.slice(0, limit - 9)}_${sha256(text).slice(0, 8)}`
}
