//! What a limit is called on the server.

/// The key of the limit `name`. All of it that tells limits apart is its hash tag.
pub(super) fn of_limit(name: &str) -> String {
    format!("paceline:{{{}}}", escaped(name))
}

/// The key of the limit of `key` among those called `name`.
pub(super) fn of_key(name: &str, key: &str) -> String {
    format!("paceline:{{{}:{}}}", escaped(name), escaped(key))
}

/// Without what ends a hash tag or parts a name from a key, such that no two texts become one.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '%' => escaped.push_str("%25"),
            ':' => escaped.push_str("%3A"),
            '{' => escaped.push_str("%7B"),
            '}' => escaped.push_str("%7D"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_as_they_were_given_but_for_four_letters() {
        assert_eq!(of_limit("api"), "paceline:{api}");
        assert_eq!(of_key("api", "user 7"), "paceline:{api:user 7}");
        assert_eq!(of_key("a:b", "{100%}"), "paceline:{a%3Ab:%7B100%25%7D}");
    }

    proptest! {
        #[test]
        fn no_two_are_called_the_same(
            a in "[ab:%{}7]{0,3}", b in "[ab:%{}7]{0,3}", c in "[ab:%{}7]{0,3}", d in "[ab:%{}7]{0,3}",
        ) {
            prop_assert_eq!(of_key(&a, &b) == of_key(&c, &d), (&a, &b) == (&c, &d));
            prop_assert_ne!(of_limit(&a), of_key(&b, &c));
            let key = of_key(&a, &b);
            prop_assert_eq!((key.matches('{').count(), key.matches('}').count()), (1, 1));
        }
    }
}
