import type { ToolTraits } from '../../machines/agent/batch-calls.js'
import type { ToolSpec } from '../core/models/provider.js'
import type { Tool, ToolSearch } from '../core/tools/tool.js'
import type { ToolSet } from '../core/tools/tool-set.js'

/** The tools of an agent, each with another in its place. No sub-agent runs: its tool is one like any other. */
export abstract class WrappedTools implements ToolSet {
  readonly #tools: ToolSet
  readonly #wrapped = new WeakMap<Tool, Tool>()

  constructor(tools: ToolSet) {
    this.#tools = tools
  }

  /** The tool that takes the place of another: the same one each time. */
  protected abstract wrap(tool: Tool): Tool

  get(name: string): Tool | undefined {
    const tool = this.#tools.get(name)
    if (!tool) return undefined
    const known = this.#wrapped.get(tool)
    if (known) return known
    const { delegate: _delegate, ...wrapped } = this.wrap(tool)
    this.#wrapped.set(tool, wrapped)
    return wrapped
  }

  get names(): readonly string[] {
    return this.#tools.names
  }

  get specs(): readonly ToolSpec[] {
    return this.#tools.specs
  }

  get offered(): readonly ToolSpec[] {
    return this.#tools.offered
  }

  get deferred(): readonly Tool[] {
    return this.#tools.deferred
  }

  get search(): ToolSearch | undefined {
    return this.#tools.search
  }

  get isHosted() {
    return this.#tools.isHosted
  }

  get traits(): Record<string, ToolTraits> {
    return Object.fromEntries(
      Object.entries(this.#tools.traits).map(([name, { delegate: _delegate, nested: _nested, ...rest }]) => [
        name,
        rest,
      ]),
    )
  }
}
