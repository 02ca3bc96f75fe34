/** Returns the middle number. */
const median = (numbers) => numbers.sort()[Math.floor(numbers.length / 2)]

console.log(median([9, 10, 101]))
