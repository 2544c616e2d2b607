// An image and a text function with models that their packages contain, so that nothing but packages is fetched.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { repositoryDir } from '../machine.js';
import type { CpuFunction } from './cpu-run.js';

const imageDir = join(repositoryDir, 'examples', 'text-recognition');

/** Text that `examples/text-recognition/make-sample.py` draws. */
const drawn = ['Functions on GPU servers', 'Invoice 2024-0815'];

/** Reads the text in a picture: three convolutional networks of RapidOCR, with ONNX Runtime. */
export async function imageFunction(): Promise<CpuFunction> {
  const picture = await readFile(join(imageDir, 'sample.png'));
  return {
    name: 'image',
    code: await readFile(join(imageDir, 'recognise.py'), 'utf8'),
    memoryMiB: 1536,
    requirements: ['onnxruntime>=1.20,<2', 'rapidocr==3.10.0'],
    // `import rapidocr` alone loads nothing: the package loads its modules when they are first used.
    imports: ['numpy', 'onnxruntime', 'PIL.ImageFont', 'rapidocr.main'],
    input: { image: picture.toString('base64') },
    check({ text }) {
      if (typeof text === 'string' && drawn.every((line) => text.includes(line))) return;
      throw new Error(`the picture was not read: ${JSON.stringify(text)}`);
    },
  };
}

/** Names the language of each text: naive Bayes over byte n-grams, 97 languages (py3langid). */
const languageCode = `import py3langid

def main(args):
    return {"languages": [py3langid.classify(text)[0] for text in args["texts"]]}
`;

/** The first sentences of the Universal Declaration of Human Rights, article 1, with their languages. */
const texts: Readonly<Record<string, string>> = {
  en: 'All human beings are born free and equal in dignity and rights.',
  de: 'Alle Menschen sind frei und gleich an Würde und Rechten geboren.',
  fr: 'Tous les êtres humains naissent libres et égaux en dignité et en droits.',
  es: 'Todos los seres humanos nacen libres e iguales en dignidad y derechos.',
  ru: 'Все люди рождаются свободными и равными в своем достоинстве и правах.',
  ja: 'すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。',
};

/** A text function. */
export const textFunction: CpuFunction = {
  name: 'text',
  code: languageCode,
  memoryMiB: 384,
  requirements: ['py3langid==0.4.0'],
  imports: ['numpy', 'py3langid'],
  input: { texts: Object.values(texts) },
  check({ languages }) {
    const wanted = Object.keys(texts).join();
    if (Array.isArray(languages) && languages.join() === wanted) return;
    throw new Error(`the languages are ${JSON.stringify(languages)} instead of ${wanted}`);
  },
};
