import { expect } from '@jest/globals'

/** The elements of an XML document. Throws for an unclosed element or a malformed attribute. */
export function elementsOf(xml: string): string[] {
  const open: string[] = []
  const names: string[] = []
  const rest = xml.replaceAll(
    /<!--[^]*?-->|<\?[^]*?\?>|<!DOCTYPE[^>]*>|<(\/?)([\w:-]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/g,
    (_all, closing?: string, name?: string, _attributes?: string, empty?: string) => {
      if (name === undefined) return ''
      if (closing) expect(open.pop()).toBe(name)
      else {
        names.push(name)
        if (!empty) open.push(name)
      }
      return ''
    },
  )
  expect(open).toEqual([])
  expect(rest).not.toMatch(/[<>]/)
  return names
}
