// Writes the JSON Schema of a log record from its TypeScript type. Doc comments become descriptions.
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SymbolFlags, TypeFlags } from 'typescript/unstable/sync'
import { readProject } from './type-project.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Settings and state of guards, which change from version to version. Readers of logs need none of their keys. */
const opaqueTypes = new Set(['AgentConfig', 'GuardrailsState', 'JsonObject'])

const plainTypes = ['string', 'number', 'boolean', 'null', 'object']

export function createRecordsSchema() {
  const file = join(root, 'src/core/sessions/clear-records.ts')
  return readProject(root, [file], ({ checker, program }) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file))
    const record = checker.getMemberInModuleExports(module, 'ShownRecord')
    return new SchemaWriter(checker).write(checker.getDeclaredTypeOfSymbol(record))
  })
}

class SchemaWriter {
  #checker
  #definitions = {}

  constructor(checker) {
    this.#checker = checker
  }

  write(type) {
    const record = this.#toBody(type)
    return {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'A record of a Statewright session log',
      description: "A line of 'statewright sessions show ID --json'. Later versions may add keys.",
      ...record,
      $defs: Object.fromEntries(Object.entries(this.#definitions).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    }
  }

  #toSchema(type) {
    const name = this.#findName(type)
    if (name === 'Json') return {}
    if (opaqueTypes.has(name)) return { type: 'object' }
    if (name === undefined) return this.#toBody(type)
    if (!(name in this.#definitions)) {
      this.#definitions[name] = {}
      const description = (type.getAliasSymbol() ?? type.getSymbol()).getDocumentationComment(this.#checker)
      this.#definitions[name] = { ...describe(description), ...this.#toBody(type) }
    }
    return { $ref: `#/$defs/${name}` }
  }

  /** The name of an object or union that the package declares, without type arguments. */
  #findName(type) {
    const symbol = type.getAliasSymbol() ?? (type.isClassOrInterface() ? type.getSymbol() : undefined)
    if (symbol === undefined || type.isLiteralType() || type.getAliasTypeArguments().length > 0)
      return undefined
    return symbol.declarations.some(
      ({ path }) => path.includes('/node_modules/') || path.includes('bundled:'),
    )
      ? undefined
      : symbol.name
  }

  #toBody(type) {
    const checker = this.#checker
    const text = checker.typeToString(type)
    if (text === 'unknown') return {}
    if (plainTypes.includes(text)) return { type: text }
    if (type.isLiteralType()) return { const: type.value }
    if (type.isTemplateLiteralType()) return { type: 'string' }
    if (type.isUnionType()) return this.#toUnion(type.getTypes())
    if (checker.isArrayLikeType(type)) {
      const items = checker.getTypeArguments(type).map((item) => this.#toSchema(item))
      return { type: 'array', items: items.length === 1 ? items[0] : { anyOf: items } }
    }
    return this.#toObject(type)
  }

  /** The type of an optional property includes undefined. */
  #toUnion(types) {
    const parts = types.filter((type) => (type.flags & TypeFlags.Undefined) === 0)
    const constants = parts.filter((type) => type.isLiteralType()).map(({ value }) => value)
    const schemas = parts.filter((type) => !type.isLiteralType()).map((type) => this.#toSchema(type))
    if (constants.length === 1) schemas.unshift({ const: constants[0] })
    else if (constants.includes(true) && constants.includes(false)) schemas.unshift({ type: 'boolean' })
    else if (constants.length > 0) schemas.unshift({ enum: constants })
    return schemas.length === 1 ? schemas[0] : { anyOf: schemas }
  }

  #toObject(type) {
    const checker = this.#checker
    const properties = {}
    const required = []
    for (const symbol of checker.getPropertiesOfType(type)) {
      const inner = checker.getTypeOfSymbol(symbol)
      properties[symbol.name] = {
        ...this.#toSchema(inner),
        ...describe(symbol.getDocumentationComment(checker)),
      }
      if ((symbol.flags & SymbolFlags.Optional) === 0) required.push(symbol.name)
    }
    const [index] = checker.getIndexInfosOfType(type)
    const isPart = type.getAliasSymbol()?.name === 'Pick'
    return {
      type: 'object',
      ...(Object.keys(properties).length > 0 && { properties }),
      ...(required.length > 0 && { required }),
      ...(index && { additionalProperties: this.#toSchema(index.valueType) }),
      ...(isPart && { additionalProperties: true }),
    }
  }
}

const describe = (text) => (text === '' ? {} : { description: text.replaceAll(/\s+/g, ' ').trim() })
