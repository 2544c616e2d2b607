/** Whether an Accept header lets the answer be JSON; an absent one does. */
export function acceptsJson(accept: string | undefined): boolean {
  return accepts(accept, 'application/json');
}

/** Whether an Accept header lets the answer have this Content-Type; an absent one does. The closest range decides. */
export function accepts(accept: string | undefined, contentType: string): boolean {
  if (accept === undefined || accept === '*/*' || accept.trim() === '') return true;
  const semicolon = contentType.indexOf(';');
  const type = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).toLowerCase();
  const mainType = `${type.slice(0, type.indexOf('/'))}/*`;
  let closest = -1;
  let isAccepted = false;
  for (const given of accept.split(',')) {
    const [range = '', ...parameters] = given.split(';').map((part) => part.trim().toLowerCase());
    const closeness = ['*/*', mainType, type].indexOf(range);
    if (closeness <= closest) continue;
    closest = closeness;
    isAccepted = !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  }
  return isAccepted;
}
