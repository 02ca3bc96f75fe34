// The terminal output, with one line per library and variant, and one line per unexpected result.

const count = (results, kind) => results.filter(({ result }) => result === kind).length

export function summarize({ peers, results, controls, missing }, expected) {
  const lines = []
  const wrong = []
  for (const { case: id, why } of controls) wrong.push(`CONTROL ${id}: ${why}`)
  for (const { peer, variant, why } of missing) wrong.push(`MISSING ${peer}, ${variant}: ${why}`)
  for (const { name } of peers) {
    for (const variant of ['defaults', 'documented']) {
      const own = results.filter((one) => one.peer === name && one.variant === variant)
      if (own.length === 0) continue
      const counts = ['pass', 'expected_fail', 'fail', 'not_claimed'].map(
        (kind) => `${count(own, kind)} ${kind}`,
      )
      lines.push(`${name.padEnd(12)} ${variant.padEnd(11)} ${counts.join(', ')}`)
      for (const { case: id, result, evidence } of own) {
        const isListed = expected[name]?.[variant]?.[id] !== undefined
        if (result !== 'pass' && result !== 'not_claimed' && result !== 'expected_fail')
          wrong.push(`${result.toUpperCase()} ${name}, ${variant}, ${id}: ${evidence}`)
        if (result === 'pass' && isListed)
          wrong.push(`UNEXPECTED PASS ${name}, ${variant}, ${id}: take it off conformance/expected.json`)
      }
    }
  }
  if (controls.length === 0) lines.unshift('controls     each case tells the right loop from the wrong one')
  return { text: `${[...lines, ...wrong].join('\n')}\n`, isGood: wrong.length === 0 }
}
