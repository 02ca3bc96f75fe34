import { readProperty } from '../../core/base/json.js'

const headerKey = 'x-mcp-header'

/**
 * Why a tool whose arguments are to travel as headers, too, cannot be called; undefined when it can. Completes a
 * sentence that begins with the schema. The rules are those of the revision 2026-07-28, "Custom Headers from Tool
 * Parameters": a header stands on a property that is a text, an integer or a flag, and has a name of its own.
 */
export function findHeaderFault(schema: unknown): string | undefined {
  const names = new Set<string>()
  const visit = (node: unknown, isProperty: boolean, isReachable: boolean): string | undefined => {
    if (typeof node !== 'object' || node === null) return undefined
    if (Object.hasOwn(node, headerKey)) {
      const fault = findNameFault(node, names)
      if (fault !== undefined) return fault
      if (!isProperty || !isReachable) return `has an ${headerKey} where no argument is`
    }
    for (const [key, child] of Object.entries(node)) {
      const isProperties = key === 'properties' && !Array.isArray(node)
      const inner =
        isProperties && typeof child === 'object' && child !== null ? Object.values(child) : [child]
      for (const value of inner) {
        const fault = visit(value, isProperties, isProperties && isReachable)
        if (fault !== undefined) return fault
      }
    }
    return undefined
  }
  return visit(schema, false, true)
}

function findNameFault(node: object, names: Set<string>): string | undefined {
  const name = readProperty(node, headerKey)
  // The token of RFC 9110, section 5.6.2.
  if (typeof name !== 'string' || !/^[!#$%&'*+\-.^_`|~\w]+$/.test(name))
    return `has an ${headerKey} that is no name of a header`
  if (!['string', 'integer', 'boolean'].includes(String(readProperty(node, 'type'))))
    return `has an ${headerKey} on what is neither a text, an integer nor a flag`
  if (names.has(name.toLowerCase())) return `has the ${headerKey} '${name}' twice`
  names.add(name.toLowerCase())
  return undefined
}
