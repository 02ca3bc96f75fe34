export type Point = readonly [x: number, y: number]

/** An SVG path along these points, with rounded corners. */
export function toPath(points: readonly Point[]): string {
  const apart = points.filter(([x, y], index) => {
    const before = points[index - 1]
    return before === undefined || Math.hypot(x - before[0], y - before[1]) > 1
  })
  const [first] = apart
  if (!first) return ''
  let path = `M${first[0]},${first[1]}`
  for (let at = 1; at < apart.length; at++) {
    const [here, next] = [apart[at], apart[at + 1]]
    if (!here) break
    if (!next) path += `L${here[0]},${here[1]}`
    else path += `Q${here[0]},${here[1]} ${(here[0] + next[0]) / 2},${(here[1] + next[1]) / 2}`
  }
  return path
}

/** Animates the token along its trail. Returns a function that puts it at the end at once. */
export function walkToken({
  trail,
  token,
  end,
  ms,
}: {
  trail: SVGPathElement
  token: SVGElement
  end: Point
  ms: number
}): (() => void) | null {
  const put = (x: number, y: number): void => token.setAttribute('transform', `translate(${x},${y})`)
  trail.removeAttribute('stroke-dasharray')
  trail.removeAttribute('stroke-dashoffset')
  trail.classList.remove('walked')
  const length = ms > 0 ? trail.getTotalLength() : 0
  if (length < 2) {
    trail.classList.add('walked')
    put(...end)
    return null
  }
  const time = Math.min(ms, 220 + length * 0.7)
  const start = performance.now()
  trail.setAttribute('stroke-dasharray', String(length))
  let frame = requestAnimationFrame(function step(now) {
    const part = Math.min(1, Math.max(0, now - start) / time)
    // Slow at both ends.
    const eased = part < 0.5 ? 2 * part * part : 1 - (2 - 2 * part) ** 2 / 2
    const { x, y } = trail.getPointAtLength(length * eased)
    put(x, y)
    trail.setAttribute('stroke-dashoffset', String(length * (1 - eased)))
    if (part < 1) frame = requestAnimationFrame(step)
    else trail.classList.add('walked')
  })
  return () => {
    cancelAnimationFrame(frame)
    trail.removeAttribute('stroke-dasharray')
    trail.removeAttribute('stroke-dashoffset')
    put(...end)
  }
}
